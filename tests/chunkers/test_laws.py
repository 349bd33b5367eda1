"""The laws of chunking, each a property of every registered strategy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from transforms.chunkers import CHUNKERS, Chunker, get_chunker
from transforms.records import Block, Chunk, Document

# ---------------------------------------------------------------------------------------------- documents

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
SOUP = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
ANY = st.text(max_size=120)
TEXTS = st.one_of(SOUP, SOUP, ANY)
MEDIA_TYPES = st.sampled_from(["text/plain", "text/markdown"])


@st.composite
def documents(draw: st.DrawFn) -> Document:
    text = draw(TEXTS)
    media_type = draw(MEDIA_TYPES)
    return Document("d", text, media_type, blocks=draw(st.none() | blocks_over(text)))


@st.composite
def blocks_over(draw: st.DrawFn, text: str) -> tuple[Block, ...]:
    """Blocks as a parser of any quality might give them: gaps, blank ones, cuts inside words."""
    cuts = sorted(set(draw(st.lists(st.integers(0, len(text)), max_size=8))))
    blocks = []
    for start, end in pairwise(cuts):
        kind = draw(st.sampled_from(["heading", "paragraph", "table", "code", "list_item", "other", None]))
        if kind:
            level = draw(st.integers(0, 9)) if kind == "heading" else None
            blocks.append(Block(kind, start, end, level=level))
    return tuple(blocks)


@st.composite
def chunkers(
    draw: st.DrawFn, name: str, tokenizers: Sequence[str] = ("character", "cl100k_base", "o200k_base")
) -> Chunker:
    size = draw(st.one_of(st.integers(1, 12), st.integers(1, 80)))
    overlap = draw(st.one_of(st.just(0), st.integers(0, size - 1)))
    settings = {"chunk_size": size, "chunk_overlap": overlap, "tokenizer": draw(st.sampled_from(tokenizers))}
    return get_chunker(name, **settings, **draw(OWN_SETTINGS.get(name, st.just({}))))


OWN_SETTINGS = {
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


def check_laws(chunker: Chunker, document: Document) -> list[Chunk]:
    """Assert every law that one document can show."""
    text = document.text
    result = chunker.chunk_document(document)
    chunks = list(result.chunks)
    count = chunker.counter.count

    # 6: a blank document gives no chunk, and every other one does.
    assert bool(chunks) == bool(text.strip())
    edges = {match.end() for match in regex.finditer(r"\X", text)} | {0}
    held = 0
    for chunk in chunks:
        start, end = chunk.start, chunk.end
        # 1: slice; 6: no chunk is blank.
        assert chunk.is_derived or chunk.text == "".join(text[s:e] for s, e in chunk.spans)
        assert chunk.text.strip()
        # 2: coverage, of the gap before this chunk.
        assert not text[held:start].strip(), (held, start)
        held = end
        # 3: budget, on the final text alone.
        assert chunk.token_count == count(chunk.text)
        assert chunk.over_budget == (chunk.token_count > chunker.chunk_size)
        if chunk.over_budget:
            assert len(regex.findall(r"\X", chunk.text)) == 1
        # 5: graphemes.
        assert start in edges
        assert end in edges
        # 7: edges.
        tail = regex.findall(r"\X", chunk.text)[-1]
        assert not chunk.text[-1].isspace() or tail.strip()
        first_line = re.match(r"[^\S\r\n]*(?:\r\n|\n|\r)", chunk.text)
        head = regex.match(r"\X", chunk.text).group()
        assert not first_line or head.strip()
        # Bytes and lines say the same as the span.
        low, high = chunk.byte_span
        assert text.encode()[low:high].decode() == text[start:end]
        assert chunk.lines[0] == 1 + len(re.findall(r"\r\n|\n|\r", text[:start]))
        assert chunk.lines[1] == 1 + len(re.findall(r"\r\n|\n|\r", text[: end - 1]))
    assert not text[held:].strip()
    assert result.lost == 0

    # 4: order, progress, and not more chunks than graphemes.
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        assert after.overlap == max(0, before.end - after.start)
        overlap = text[after.start : before.end]
        assert count(overlap) <= max(chunker.chunk_overlap, 0) or chunker.name == "token"
        assert text[before.end : after.end].strip(), "a chunk of overlap alone"
    assert len(chunks) < len(edges)

    # 12: parents and indexes.
    places = {chunk.chunk_id: chunk.index for chunk in chunks}
    assert len(places) == len(chunks)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.parent_id is None or places[chunk.parent_id] < chunk.index for chunk in chunks)

    # 8: determinism.
    assert list(chunker.chunk_document(document).chunks) == chunks
    return chunks


@pytest.mark.parametrize("name", CHUNKERS)
def test_every_law_holds_for_every_strategy_setting_and_text(name: str) -> None:
    @given(st.data(), documents())
    def laws(data: st.DataObject, document: Document) -> None:
        check_laws(data.draw(chunkers(name)), document)

    laws()
