"""`token`: windows of tokens, their edges on grapheme clusters, trimmed alike."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import regex

from transforms.chunkers import CHUNKERS, get_chunker
from transforms.chunkers.measured import Measured
from transforms.errors import ConfigError
from transforms.records import Document
from transforms.tokenizers import get_tokenizer


class Utf8Bytes:
    """One token for each byte, as a byte-level encoding without merges has."""

    name = vocabulary_digest = "utf8-bytes"

    def count(self, text):
        return len(text.encode())

    def count_many(self, texts):
        return [self.count(text) for text in texts]

    def boundaries(self, text):
        return [end for end, character in enumerate(text, 1) for _ in character.encode()]


def chunker_of(chunk_size, chunk_overlap=0, tokenizer="character"):
    return get_chunker("token", chunk_size=chunk_size, chunk_overlap=chunk_overlap, tokenizer=tokenizer)


def spans(text, *settings):
    chunks = chunker_of(*settings).chunk(Document("d", text))
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    return [(chunk.start, chunk.end) for chunk in chunks]


def texts(text, *settings):
    return [text[start:end] for start, end in spans(text, *settings)]


def windows(text, *settings):
    """The windows before anything is trimmed."""
    chunker = chunker_of(*settings)
    return list(chunker.windows(Measured(Document("d", text), (), chunker.counter), 0, len(text)))


def trimmed(text, windows):
    """The windows without white space at their ends and blank lines, less those that then lie in their neighbour."""
    kept = []
    for start, end in windows:
        end = start + len(text[start:end].rstrip())
        start += len(regex.match(r"(?:[^\S\n]*\n)*", text[start:end]).group())
        if start < end and (not kept or end > kept[-1][1]):
            kept.append((start, end))
    return kept


# ---------------------------------------------------------------------------------------------------- windows


def test_defaults_are_256_tokens_without_overlap():
    chunker = get_chunker("token")
    assert (chunker.chunk_size, chunker.chunk_overlap, chunker.tokenizer) == (256, 0, "cl100k_base")


def test_windows_have_the_size_and_step_by_size_less_overlap():
    assert spans("0123456789" * 3, 10, 0) == [(0, 10), (10, 20), (20, 30)]
    assert spans("0123456789" * 3, 10, 4) == [(0, 10), (6, 16), (12, 22), (18, 28), (24, 30)]


def test_windows_count_the_tokens_of_one_tokenisation():
    text = "The ferry leaves the north quay every ten minutes, whatever the weather."
    ends = [0, *map(int, get_tokenizer("cl100k_base").boundaries(text))]
    expected = [(ends[at], ends[min(at + 4, len(ends) - 1)]) for at in range(0, len(ends) - 1, 4)]
    assert windows(text, 4, 0, "cl100k_base") == expected


def test_no_window_is_a_suffix_of_the_one_before():
    assert spans("0123456789", 4, 3) == [(0, 4), (1, 5), (2, 6), (3, 7), (4, 8), (5, 9), (6, 10)]
    assert spans("0123", 4, 3) == [(0, 4)]


def test_repeated_text_has_its_own_place():
    text = "tick tick tock tick tick tock tick"
    assert spans(text, 9, 4) == [(0, 9), (5, 14), (10, 19), (15, 24), (20, 29), (25, 34)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((10, 9), [(at, at + 10) for at in range(41)]),
        ((1, 0), [(at, at + 1) for at in range(50)]),
        ((10, 0.99), [(at, at + 10) for at in range(41)]),
        ((10, 0.5), [(at, at + 10) for at in range(0, 41, 5)]),
    ],
)
def test_the_largest_overlap_and_the_smallest_size_make_progress(settings, expected):
    assert spans("0123456789" * 5, *settings) == expected


@pytest.mark.parametrize(
    ("setting", "settings"),
    [
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": 10}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": 12}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": -1}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": 1.0}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": -0.1}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": math.nan}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": math.inf}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": "half"}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": None}),
        ("chunk_size", {"chunk_size": 0}),
        ("chunk_size", {"chunk_size": -1}),
        ("chunk_size", {"chunk_size": 2.5}),
        ("chunk_size", {"chunk_size": True}),
        ("chunk_size", {"chunk_size": "many"}),
    ],
)
@pytest.mark.parametrize("name", CHUNKERS)
def test_settings_without_progress_are_refused_by_name_in_every_strategy(name, setting, settings):
    with pytest.raises(ConfigError, match=f"^{setting}=") as refused:
        get_chunker(name, tokenizer="character", **settings)
    assert isinstance(refused.value, ValueError)


# -------------------------------------------------------------------------------------------------------- edges


def test_white_space_around_a_window_is_not_in_its_chunk():
    text = "up  to  us  we  go"
    raw = windows(text, 4, 2)
    assert raw == [(0, 4), (2, 6), (4, 8), (6, 10), (8, 12), (10, 14), (12, 16), (14, 18)]
    assert spans(text, 4, 2) == trimmed(text, raw)
    assert texts(text, 4, 2) == ["up", "  to", "  us", "  we", "  go"]


def test_blank_lines_around_a_window_are_not_in_its_chunk_but_indentation_is():
    assert texts("abc\n\n\n    cd\n\n", 6) == ["abc", "    cd"]
    assert texts("ab  \n\n  \n cd", 100) == ["ab  \n\n  \n cd"]
    assert texts("\n \n  ab\n\n", 100) == ["  ab"]


def test_a_blank_document_has_no_chunk():
    assert texts("", 4) == texts(" \n\t\u3000\n", 4) == []


@pytest.mark.parametrize("chunk_overlap", [0, 1])
@pytest.mark.parametrize("chunk_size", [2, 3, 4, 5, 7])
def test_a_window_ends_inside_no_character_of_several_tokens(chunk_size, chunk_overlap):
    text = "naïve 👍🏽 日本"
    settings = (chunk_size, chunk_overlap, Utf8Bytes())
    raw = windows(text, *settings)
    if not chunk_overlap:
        assert "".join(text[start:end] for start, end in raw) == text
        assert all(before[1] == after[0] for before, after in pairwise(raw))
    assert spans(text, *settings) == trimmed(text, raw)
    for start, end in raw:
        # Over budget is only what no cut may divide: a grapheme cluster, be it of several code points.
        assert len(text[start:end].encode()) <= chunk_size or regex.fullmatch(r"\X", text[start:end])
    assert "�" not in "".join(texts(text, *settings))


def test_a_cluster_larger_than_the_budget_is_a_chunk_of_its_own_and_marked():
    chunks = chunker_of(5, 0, Utf8Bytes()).chunk(Document("d", "ab👍🏽cd"))
    assert [(chunk.text, chunk.over_budget) for chunk in chunks] == [
        ("ab", False),
        ("👍🏽", True),
        ("cd", False),
    ]


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "🇩🇪", "e\u0301\u0323", "क्षि", "각", "\r\n"])
def test_an_edge_inside_a_cluster_moves_inward(cluster):
    text = f"ab{cluster}cd"
    length = len(cluster)
    assert windows(text, length + 1)[0] == (0, 2)
    assert windows(text, length + 2)[0] == (0, 2 + length)


def test_an_overlap_that_would_begin_inside_a_cluster_begins_after_it():
    text = "ab👍🏽cdef"
    assert windows(text, 5, 2) == [(0, 5), (4, 8)]
    assert windows(text, 4, 1)[:2] == [(0, 4), (4, 8)]


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "character"])
def test_spellings_of_special_tokens_are_kept_and_counted_as_text(name):
    text = (
        "Models stop at <|endoftext|> or <|im_start|>user<|im_end|>; others use [CLS] [SEP] [MASK] or "
        "<s> </s> <unk> <0x0A>. End."
    )
    found = spans(text, 12, 2, name)
    held = {place for start, end in found for place in range(start, end)}
    assert held >= {place for place, character in enumerate(text) if not character.isspace()}
    assert all(get_tokenizer(name).count(text[start:end]) <= 12 for start, end in found)


def test_a_document_of_less_than_a_window_is_one_chunk():
    (chunk,) = chunker_of(256, 0, "cl100k_base").chunk(Document("d", "A short note.\n"))
    assert (chunk.text, chunk.token_count, chunk.strategy, chunk.kind) == (
        "A short note.",
        4,
        "token",
        "body",
    )


def test_a_window_that_has_more_tokens_without_the_white_space_around_it_is_made_shorter():
    text = "a \n ```\ncode # no\n```\n"
    chunks = get_chunker("token", chunk_size=2, chunk_overlap=1).chunk(Document("d", text))
    assert not any(chunk.over_budget for chunk in chunks)
    assert max(chunk.token_count for chunk in chunks) == 2


def test_a_window_begins_after_the_one_before_and_still_without_a_blank_line_and_within_its_budget():
    for text, settings in (
        ("a\n---\nword", {"chunk_size": 6, "chunk_overlap": 5, "tokenizer": "character"}),
        ("# Head\ndon'ta", {"chunk_size": 2, "chunk_overlap": 1, "tokenizer": "o200k_base"}),
    ):
        chunks = get_chunker("token", **settings).chunk(Document("d", text))
        assert all(before.start < after.start for before, after in pairwise(chunks))
        assert not any(chunk.text[0] == "\n" or chunk.over_budget for chunk in chunks)
