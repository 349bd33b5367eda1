"""Twice the text costs twice the work, whatever the text: counted in calls and characters, not by a clock."""

from __future__ import annotations

import re
import sys
from functools import cache

import pytest

from transforms.chunkers import CHUNKERS, compiled, get_chunker
from transforms.records import Block, Document
from transforms.tokenizers.encodings import EncodingTokenizer, encoding_tokenizer

pytestmark = pytest.mark.skipif(
    compiled.native is not None,
    reason="compiled loops do not let their work be counted; test_compiled.py runs this without them",
)

# A small budget shows what a cut costs, and an overlap what looking back does.
BUDGETS = ({"chunk_size": 12, "chunk_overlap": 0}, {"chunk_size": 24, "chunk_overlap": 11})
OWN_SETTINGS = {
    "table_rows": ({"rows_per_chunk": 2, "fallback": "heading_aware"},),
    "delimiter": (
        {"delimiters": [". ", "\n", ".."], "drop_delimiters": True, "child_delimiters": [" "]},
        {"budget": "soft", "delimiters": " "},
        {"merge": False},
    ),
    "code": ({"language": "python", "max_chunk_lines": 5, "overlap_lines": 2},),
    "file_type": (
        {"handler": "handlers:lines", "max_chunks": 10**6},
        {"handler": "handlers:whole"},
        {"fallback_mode": "line", "k": 0, "comment_block_threshold": 4, "prompt_filter": True},
    ),
    "json": ({"join_records": True},),
    "markdown": ({"max_lines": 3},),
    "heading": ({"fallback": "heading_aware", "min_chunk_size": 1, "split_level": 6}, {"fallback": "token"}),
    "paper": ({"split_level": 6, "abstract_headings": ["Foot"], "sections": "sentence"},),
    "recursive": ({"separators": [["\n\n", "\r\n"], [". ", "; ", "、"], " "], "min_chunk_size": 5},),
}
SIZE = 900


PLAIN = encoding_tokenizer("cl100k_base", "tiktoken")


class CountingEncoding(EncodingTokenizer):
    """cl100k, recording what it is asked to measure."""

    def __init__(self):
        vars(self).update(vars(PLAIN))
        self.calls = self.characters = self.passes = 0

    def count(self, text):
        self.calls += 1
        self.characters += len(text)
        return PLAIN.count(str(text))

    def encode_packed(self, text):
        self.passes += 1
        self.characters += len(text)
        return PLAIN.encode_packed(str(text))


class CountingWords:
    """One token for each run of characters that are not white space, recording what it is asked to measure."""

    name = vocabulary_digest = "words"

    def __init__(self):
        self.calls = self.characters = self.passes = 0

    def count(self, text):
        self.calls += 1
        self.characters += len(text)
        return len(text.split())

    def count_many(self, texts):
        return [self.count(text) for text in texts]

    def boundaries(self, text):
        self.passes += 1
        self.characters += len(text)
        return [word.end() for word in re.finditer(r"\S+", text)]


class Text(str):
    """A text that counts the characters that are searched, compared and copied in it."""

    touched = 0

    def find(self, sub, start=0, end=sys.maxsize):
        found = super().find(sub, start, end)
        self.touched += (min(end, len(self)) if found < 0 else found) - start + 1
        return found

    def rfind(self, sub, start=0, end=sys.maxsize):
        found = super().rfind(sub, start, end)
        self.touched += min(end, len(self)) - (start if found < 0 else found) + 1
        return found

    def count(self, sub, start=0, end=sys.maxsize):
        self.touched += min(end, len(self)) - start + 1
        return super().count(sub, start, end)

    def __contains__(self, sub):
        self.touched += 1 + (super().find(sub) if super().__contains__(sub) else len(self))
        return super().__contains__(sub)

    def __getitem__(self, place):
        found = super().__getitem__(place)
        self.touched += len(found)
        return found


# ------------------------------------------------------------------------------------------------- hostile texts


def prose(size):
    return "The ferry leaves at ten. It is late, as ever; so what? Yes. " * (size // 60)


def paragraphs(size):
    return "One line.\n\nTwo.\n\n" * (size // 17)


TEXTS = {
    "one line without spaces": lambda size: "x1-y2_z3/" * (size // 9),
    "blank lines": lambda size: "a" + "\n" * 20 * size + "b",
    "blank lines, again and again": lambda size: ("a" + "\n" * 90) * (size // 10),
    "blank lines with spaces": lambda size: "a" + "\n  " * (size // 3) + "b",
    "one letter": lambda size: "a" * size,
    "one wide letter": lambda size: "字" * size,
    "prose": prose,
    "small paragraphs": paragraphs,
    "a far paragraph break": lambda size: prose(size) + "\n\nThe end.",
    "a far line break": lambda size: "word " * (size // 5) + "\nThe end.",
    "a far stop": lambda size: "word " * (size // 5) + ". The end.",
    "commas of numbers before far clauses": lambda size: ("1,000 " * 10 + "word; ") * (size // 66),
    "decimals before far stops": lambda size: ("3.14 " * 10 + "end! ") * (size // 55),
    "abbreviations": lambda size: "Dr. " * (size // 4),
    "dots": lambda size: "." * 16 * size + "a",
    "mixed stops": lambda size: "?!" * (size // 2) + "a",
    "a stop with closers": lambda size: "a." + ")" * 6 * size + "a",
    "spaces": lambda size: ("a" + " " * 80) * (size // 10),
    "lines of CRLF": lambda size: "a b c\r\n" * (size // 7),
    "paragraphs of CRLF": lambda size: "a b c\r\n \r\n" * (size // 10),
    "combining marks": lambda size: "e" + "\u0301" * size,
    "families": lambda size: "👩‍👩‍👧‍👦" * (size // 7),
    "flags": lambda size: "🇩🇪" * (size // 2),
    "Thai": lambda size: "เรือข้ามฟากออกทุกสิบนาที" * (size // 24),
    "Japanese": lambda size: "渡し船は、十分おきに出ます。" * (size // 14),
}


def plain(text):
    return lambda size: (text(size), None)


def sections(body, level=2):
    """Headings, each with a body."""

    def make(size):
        text, blocks = "", []
        while len(text) < size:
            start = len(text)
            text += "Head\n\n"
            blocks.append(Block("heading", start, start + 4, level=level))
            if body:
                blocks.append(Block("paragraph", len(text), len(text) + len(body)))
            text += body + "\n\n"
        return text, tuple(blocks)

    return make


def blocks_of(kind, line, lines=None):
    """Blocks of one kind: one of all lines, or many of some lines."""

    def make(size):
        text, blocks, start = "", [], 0
        while len(text) < size:
            text += line * (lines or size // len(line))
            blocks.append(Block(kind, start, len(text) - 1))
            text += "\n"
            start = len(text)
        return text, tuple(blocks)

    return make


def nested(size):
    """Headings one below the other, levels 1 to 6, again and again."""
    text, blocks = "", []
    while len(text) < size:
        level = len(blocks) % 6 + 1
        blocks.append(Block("heading", len(text), len(text) + 4, level=level))
        text += "Head\n\nbody\n\n"
    return text, tuple(blocks)


DOCUMENTS = {
    **{name: plain(text) for name, text in TEXTS.items()},
    "headings alone": sections(""),
    "short sections": sections("Body."),
    "long sections": sections(prose(60)),
    "long deep sections": sections(prose(60), level=5),
    "nested headings": nested,
    "one table": blocks_of("table", "| a | b |\n"),
    "many tables": blocks_of("table", "| a | b |\n", 3),
    "one wide row": blocks_of("table", "| a "),
    "one code block": blocks_of("code", "x = y\n"),
    "many code blocks": blocks_of("code", "x = y\n", 3),
    "many paragraphs": blocks_of("paragraph", "Some text. More of it.\n", 1),
    "many list items": blocks_of("list_item", "- item\n", 1),
}


@cache
def cost(strategy, document, size, tokenizer, budget, own=None):
    """What chunking costs, by what is counted."""
    content, blocks = DOCUMENTS[document](size)
    text, tokenizer = Text(content), tokenizer()
    settings = {**BUDGETS[budget], **(OWN_SETTINGS[strategy][own] if own is not None else {})}
    if strategy == "whole" or "overlap_lines" in settings:
        settings["chunk_overlap"] = 0  # refused otherwise
    chunker = get_chunker(strategy, tokenizer=tokenizer, **settings)
    calls = 0

    def count_call(_frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        chunker.chunk(Document("d", text, blocks=blocks))
    finally:
        sys.setprofile(None)
    return {
        "passes over the document": tokenizer.passes,
        "characters measured": tokenizer.characters,
        "measurements": tokenizer.calls,
        "characters searched and copied": text.touched,
        "calls": calls,
    }


def check_twice_the_text_costs_twice_the_work(*what):
    strategy, document, *how = what
    once, twice = cost(strategy, document, SIZE, *how), cost(strategy, document, 2 * SIZE, *how)
    assert once.pop("passes over the document") == twice["passes over the document"] == 1
    for kind, work in once.items():
        assert twice[kind] <= 2.2 * work + SIZE, kind


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("strategy", CHUNKERS)
def test_twice_the_text_costs_twice_the_work(strategy, document):
    for budget in range(len(BUDGETS)):
        check_twice_the_text_costs_twice_the_work(strategy, document, CountingEncoding, budget)


@pytest.mark.parametrize(
    ("strategy", "own"), [(name, own) for name in OWN_SETTINGS for own in OWN_SETTINGS[name]]
)
def test_that_holds_for_the_settings_of_a_strategy_too(strategy, own):
    place = OWN_SETTINGS[strategy].index(own)
    for document in (
        "prose",
        "paragraphs of CRLF",
        "long sections",
        "long deep sections",
        "many code blocks",
    ):
        check_twice_the_text_costs_twice_the_work(strategy, document, CountingEncoding, 1, place)


@pytest.mark.parametrize("strategy", CHUNKERS)
def test_that_holds_for_a_tokenizer_without_strong_cuts_too(strategy):
    for document in ("prose", "small paragraphs", "one letter", "spaces", "long sections", "one table"):
        check_twice_the_text_costs_twice_the_work(strategy, document, CountingWords, 1)


@pytest.mark.parametrize("strategy", [name for name in CHUNKERS if name != "whole"])
def test_prose_is_measured_little_more_than_once(strategy):
    text, tokenizer = prose(20_000), CountingEncoding()
    chunks = get_chunker(strategy, tokenizer=tokenizer, chunk_size=200, chunk_overlap=20).chunk(
        Document("d", text)
    )
    assert len(chunks) > 20
    assert tokenizer.passes == 1
    assert tokenizer.characters <= 1.2 * len(text)


@pytest.mark.parametrize("strategy", [name for name in CHUNKERS if name.startswith("heading")])
def test_twenty_thousand_headings_are_measured_about_once(strategy):
    text, blocks = sections("Body.")(20_000 * 13)
    tokenizer = CountingEncoding()
    chunks = get_chunker(strategy, tokenizer=tokenizer, chunk_size=64).chunk(
        Document("d", text, blocks=blocks)
    )
    assert sum(chunk.text.count("Head") for chunk in chunks) == 20_000
    assert tokenizer.passes == 1
    assert tokenizer.characters <= 3 * len(text)


@pytest.mark.parametrize("strategy", ["sentence", "delimiter", "heading_aware", "recursive"])
def test_text_far_from_any_block_is_packed_like_text_without_blocks(strategy):
    prose = "One sentence of some words stands here.\n" * 200
    text = prose + "# End"
    chunker = get_chunker(strategy, chunk_size=64, chunk_overlap=0)
    far = chunker.chunk(
        Document("d", text, blocks=(Block("heading", len(prose), len(text), level=1, title="End"),))
    )
    near = chunker.chunk(Document("d", prose, blocks=()))
    assert [chunk.spans for chunk in far[: len(near)]] == [chunk.spans for chunk in near]
