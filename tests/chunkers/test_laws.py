"""The laws of chunking, each a property of every registered strategy."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from soups import soup

from transforms.chunkers import CHUNKERS, Chunker, get_chunker
from transforms.records import Block, Chunk, Document

CLUSTER = regex.compile(r"\X")
LINE_BREAK = re.compile(r"\r\n|\n|\r")
BLANK_LINE = re.compile(r"[^\S\r\n]*(?:\r\n|\n|\r)")

# ----------------------------------------------------------------------------------------------------- documents

PIECES = (
    *(
        "a",
        "word",
        "Sentence one.",
        "Dr. No said 3.14!",
        "v1.2",
        "Why?",
        "x" * 40,
        "1234567890",
        "'s",
        "don't",
    ),
    *("日本語", "渡し船は十分おきに出ます。", "今日は晴れ。", "，", "時刻表", "한국어"),
    *("เรือข้ามฟาก", "ទូកឆ្លង", "السفينة", "هل وصلت؟", "जहाज", "क्षत्रिय।", "שלום"),
    *(
        "👍🏽",
        "👩‍👩‍👧‍👦",
        "🇩🇪🇫🇷🇯🇵",
        "e\u0301\u0323",
        "\u0301",
        "❤️",
        "\u200d",
        "\u0600",
        "👩",
        "\u093f",
        "\u094d",
    ),
    *(
        " ",
        "  ",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\t",
        "\u00a0",
        "\u3000",
        "\u2028",
        "\x0c",
        " \n ",
        "\n \n",
        "\u200b",
    ),
    *(
        "# Head\n",
        "## Deeper\n",
        "###### Six\n",
        "\n# ",
        "Title\n===\n",
        "```\ncode # no\n```\n",
        "~~~\n",
        "    indented\n",
    ),
    *(
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "- item\n",
        "1. one\n",
        "> quote\n",
        "<!-- # c -->\n",
        "---\n",
        "<div>\n",
    ),
    *(
        "<|endoftext|>",
        "\x00",
        "\x1b",
        "\u0378",
        "\ufeff",
        "\ufffd",
        "!",
        ".",
        "...",
        "(",
        ")",
        "”",
        "/",
        "|",
    ),
)
TEXTS = st.one_of(soup(PIECES), soup(PIECES, min_size=8), st.text(max_size=120))
MEDIA_TYPES = st.sampled_from(
    ["text/plain", "text/markdown", "application/json", "application/jsonl", "text/csv", "text/html"]
)
KINDS = ("heading", "paragraph", "abstract", "caption", "figure", "table", "code", "list_item", "other", None)


def blocks_over(text: str, drawn: bytes) -> tuple[Block, ...]:
    """Blocks as a parser of any quality might give them: gaps, blank ones, cuts inside words.

    Args:
        text: The text.
        drawn: For each block where it starts, as a share of the text, and its kind and level; the next one ends it.
    """
    cuts = {len(text) * place // 255: what for place, what in zip(drawn[::2], drawn[1::2], strict=False)}
    blocks = []
    for start, end in pairwise(sorted(cuts)):
        level, kind = divmod(cuts[start], len(KINDS))
        if name := KINDS[kind]:
            blocks.append(Block(name, start, end, level=level % 10 if name == "heading" else None))
    return tuple(blocks)


def document(text: str, media_type: str, drawn: bytes | None) -> Document:
    return Document("d", text, media_type, blocks=None if drawn is None else blocks_over(text, drawn))


DOCUMENTS = st.builds(
    document, TEXTS, MEDIA_TYPES, st.none() | st.binary(max_size=4) | st.binary(min_size=6, max_size=16)
)

# ------------------------------------------------------------------------------------------------------ settings

SIZES = st.integers(1, 12) | st.integers(1, 80)
OVERLAPS = st.just(0) | st.integers(0, 79)
TOKENIZERS = st.sampled_from(["character", "cl100k_base", "o200k_base"])
DELIMITERS = st.lists(
    st.sampled_from(["\n", "。", ". ", ";", "a", "!", "|", "..", "."]), min_size=1, max_size=4
)
OWN_SETTINGS = {
    "table_rows": st.fixed_dictionaries(
        {},
        optional={
            "rows_per_chunk": st.integers(1, 3),
            "fallback": st.sampled_from(["recursive", "token", "heading_aware"]),
        },
    ),
    "delimiter": st.fixed_dictionaries(
        {"delimiters": DELIMITERS},
        optional={
            "merge": st.booleans(),
            "budget": st.sampled_from(["hard", "soft"]),
            "drop_delimiters": st.booleans(),
            "overlap_percent": st.integers(0, 90),
            "child_delimiters": DELIMITERS,
        },
    ),
    "code": st.fixed_dictionaries(
        {},
        optional={
            "language": st.sampled_from(["python", "tsx", "sql"]),
            "max_chunk_lines": st.integers(3, 9),
            "overlap_lines": st.integers(0, 2),
        },
    ),
    "file_type": st.fixed_dictionaries(
        {},
        optional={
            "k": st.integers(0, 5),
            "fallback_mode": st.sampled_from(["auto", "line", "char"]),
            "handler": st.sampled_from(["handlers:lines", "handlers:whole"]),
            "router": st.just("handlers:route"),
            "for_prose": st.sampled_from(["token", "heading"]),
        },
    ),
    "json": st.fixed_dictionaries({}, optional={"join_records": st.booleans()}),
    "markdown": st.fixed_dictionaries({}, optional={"max_lines": st.integers(0, 9)}),
    "paper": st.fixed_dictionaries(
        {},
        optional={
            "split_level": st.integers(1, 6),
            "abstract_headings": st.just(["Head"]),
            "sections": st.sampled_from(["delimiter", "sentence", "recursive"]),
        },
    ),
    "recursive": st.fixed_dictionaries(
        {},
        optional={
            "separators": st.lists(
                st.sampled_from(["\n\n", "\n", ". ", " ", "|", ["。", "."], ["\n", "a"]]), max_size=3
            ),
            "min_chunk_size": st.integers(0, 20),
        },
    ),
    "heading": st.fixed_dictionaries(
        {},
        optional={
            "split_level": st.integers(1, 6),
            "min_chunk_size": st.integers(0, 1),
            "fallback": st.sampled_from(["recursive", "token", "heading_aware"]),
        },
    ),
}


def chunkers(name: str) -> st.SearchStrategy[Chunker]:
    """A strategy with any settings."""

    def chunker(size: int, overlap: int, tokenizer: str, own: dict[str, object]) -> Chunker:
        kinds = CHUNKERS[name].overlap_settings
        if kinds and not any(own.get(setting) for setting in kinds):
            own = {**own, "chunk_overlap": overlap % size}
        return get_chunker(name, chunk_size=size, tokenizer=tokenizer, **own)

    return st.builds(chunker, SIZES, OVERLAPS, TOKENIZERS, OWN_SETTINGS.get(name, st.just({})))


# ---------------------------------------------------------------------------------------------------------- laws


def is_child(chunk: Chunk, chunks: list[Chunk]) -> bool:
    """Whether a chunk is a part of the one it stands under, whose neighbours law 4 is about."""
    if chunk.parent_id is None:
        return False
    parent = next(other for other in chunks if other.chunk_id == chunk.parent_id)
    inside = parent.start <= chunk.start and chunk.end <= parent.end
    if inside:
        assert chunk.overlap == 0
        assert chunk.text in parent.text
    return inside


def check_laws(chunker: Chunker, document: Document) -> None:
    """Assert every law that one document can show."""
    text = document.text
    result = chunker.chunk_document(document)
    everything = list(result.chunks)
    chunks = [chunk for chunk in everything if not is_child(chunk, everything)]
    settings = chunker.settings()
    count = chunker.counter.count

    # 6: a blank document gives no chunk, and every other one does of which a setting leaves anything.
    removed = result.removed
    assert bool(chunks) == bool(text.strip()) or (removed == len("".join(text.split())) and not chunks)
    edges = {0, *(cluster.end() for cluster in CLUSTER.finditer(text))}
    line_ends = [line_break.end() for line_break in LINE_BREAK.finditer(text)]
    held, gaps = 0, []
    for chunk in chunks:
        start, end = chunk.start, chunk.end
        # 1: slice; 6: no chunk is blank.
        assert chunk.is_derived or chunk.text == "".join(text[s:e] for s, e in chunk.spans)
        assert chunk.text.strip()
        # 2: coverage, of the gaps before this chunk and in it.
        for low, high in chunk.spans:
            gaps += text[held:low].split() if low > held else ()
            held = max(held, high)
        # 3: budget, on the final text alone.
        assert chunk.token_count == count(chunk.text)
        assert chunk.over_budget == (chunk.token_count > chunker.chunk_size)
        may_exceed = settings.get("budget") == "soft" or chunker.name == "whole" or chunk.kind == "abstract"
        if chunk.over_budget and not may_exceed:
            assert len(CLUSTER.findall(chunk.text)) == 1
        # 5: graphemes.
        assert start in edges
        assert end in edges
        # 7: edges. White space can be the base of a cluster that is not blank.
        if chunk.text[-1].isspace():
            assert CLUSTER.findall(chunk.text)[-1].strip()
        if BLANK_LINE.match(chunk.text):
            assert CLUSTER.match(chunk.text).group().strip()
        # Bytes and lines say the same as the span.
        assert chunk.byte_span == (len(text[:start].encode()), len(text[:end].encode()))
        assert chunk.lines == (1 + bisect_right(line_ends, start), 1 + bisect_right(line_ends, end - 1))
    # What a setting leaves out is counted to the last character.
    assert sum(map(len, (*gaps, *text[held:].split()))) == removed, gaps
    assert result.lost == 0

    # 4: order, progress, and not more chunks than graphemes.
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        assert after.overlap == max(0, before.end - after.start) or removed
        overlap = text[after.start : before.end]
        # Windows share tokens of the whole text; alone, these can be more.
        lines = len(LINE_BREAK.findall(overlap)) + 1
        assert (
            count(overlap) <= getattr(chunker, "overlap", chunker.chunk_overlap)
            or "token" in after.strategy.split(":")
            or lines <= getattr(chunker, "overlap_lines", 0)
        )
        assert text[before.end : after.end].strip(), "a chunk of overlap alone"
    assert len(chunks) < len(edges)

    # 12: parents and indexes.
    places = {chunk.chunk_id: chunk.index for chunk in everything}
    assert len(places) == len(everything)
    assert [chunk.index for chunk in everything] == list(range(len(everything)))
    assert all(chunk.parent_id is None or places[chunk.parent_id] < chunk.index for chunk in everything)

    # 8: determinism.
    assert list(chunker.chunk_document(document).chunks) == everything


@pytest.mark.parametrize("name", CHUNKERS)
def test_every_law_holds_for_every_strategy_setting_and_text(name: str) -> None:
    given(chunkers(name), DOCUMENTS)(check_laws)()
