"""Context says where a chunk stands; in the budget or beside it, and the rows of tables stay whole below it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soups import soup
from words import Words

from transforms.chunkers import CHUNKERS, get_chunker
from transforms.parsers import ParseSettings, blocks_of, parse
from transforms.records import Document, RawDocument

ROWS = [f"| p{n:02} | {n % 7}.{n % 10} | berth {n} \\| side {'AB'[n % 2]} |" for n in range(40)]
HEADER = "| port | tide (m) | note |\n|---|---:|---|"
TIDES = "# Tides\n\nHeights by port.\n\n" + "\n".join([HEADER, *ROWS]) + "\n\nMeasured in spring.\n"
SECTIONS = "# Harbour\n\n## Moorings\n\nText about moorings.\n\n## Tides\n\nText about tides.\n"


def markdown(text, **facts):
    return Document("d", text, "text/markdown", **facts)


def chunks(document, strategy="heading", **settings):
    return get_chunker(strategy, **settings).chunk(document)


def contexts(document, **settings):
    return [chunk.context for chunk in chunks(document, chunk_size=60, tokenizer="character", **settings)]


# ------------------------------------------------------------------------------------------------- what it says


def test_headings_are_told_outermost_first_by_default():
    assert contexts(markdown(SECTIONS)) == ["Harbour", "Harbour > Moorings", "Harbour > Tides"]


def test_none_tells_nothing():
    assert set(contexts(markdown(SECTIONS, title="Manual"), context="none")) == {None}


def test_full_tells_the_title_of_the_document_before_the_headings():
    assert contexts(markdown(SECTIONS, title="Manual"), context="full")[1] == "Manual\nHarbour > Moorings"


def test_a_title_that_is_the_first_heading_is_told_once():
    assert contexts(markdown(SECTIONS, title="Harbour"), context="full")[1] == "Harbour > Moorings"


def test_a_document_without_headings_title_and_tables_has_no_context():
    assert contexts(markdown("One.\n\nTwo."), context="full") == [None]


def test_contextual_text_is_the_context_a_blank_line_and_the_text():
    last = chunks(markdown(SECTIONS), chunk_size=400, split_level=2)[-1]
    assert last.contextual_text == "Harbour > Tides\n\n## Tides\n\nText about tides."


# ------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("in_budget", [True, False])
@pytest.mark.parametrize("strategy", ["heading", "heading_aware", "recursive"])
def test_each_row_of_a_long_table_is_whole_in_one_chunk_that_knows_the_header(strategy, in_budget):
    settings = {"chunk_size": 200, "chunk_overlap": 0, "tokenizer": "character"}
    found = chunks(markdown(TIDES), strategy, **settings, context_in_budget=in_budget)
    held = [row for chunk in found for row in chunk.text.split("\n") if row in ROWS]
    assert held == ROWS
    for chunk in found:
        assert len(chunk.contextual_text if in_budget else chunk.text) <= 200
        assert TIDES[chunk.start : chunk.end] == chunk.text
        if any(row in chunk.text for row in ROWS):
            assert HEADER in chunk.contextual_text
    joined = "\n".join(chunk.text for chunk in found)
    assert "Heights by port." in joined
    assert "Measured in spring." in joined


def test_overlap_in_a_table_is_of_whole_rows():
    found = chunks(markdown(TIDES), "recursive", chunk_size=200, chunk_overlap=80, tokenizer="character")
    lines = [line for chunk in found for line in chunk.text.split("\n") if line.startswith("| p")]
    assert set(lines) <= {*ROWS, HEADER.split("\n")[0]}
    assert len(lines) > len(ROWS) + 1


def test_rows_of_html_stay_whole_over_blank_lines():
    rows = [f"<tr>\n\n  <td>p{n}</td><td>{n}.5 metres</td>\n\n</tr>" for n in range(20)]
    head = "<table>\n<tr><th>port</th><th>tide</th></tr>"
    text = "\n".join(["Tides\n", head, *rows, "</table>"])
    for media_type in ("text/html", "text/markdown"):
        found = chunks(Document("d", text, media_type), "recursive", chunk_size=150, tokenizer="character")
        assert len(found) > 5
        assert all(sum(row in chunk.text for chunk in found) == 1 for row in rows)
        continued = [chunk for chunk in found if chunk.text.startswith("<tr>\n\n")]
        assert continued
        assert all(chunk.context == head for chunk in continued)


def test_records_of_delimited_text_stay_whole_over_line_breaks_in_quotes():
    records = [f'{n},"berth {n}\n\nside ""A""",{n}.5' for n in range(30)]
    text = "\n".join(["port,note,tide", *records]) + "\n"
    found = chunks(Document("d", text, "text/csv"), "recursive", chunk_size=90, tokenizer="character")
    assert all(sum(record in chunk.text for chunk in found) == 1 for record in records)
    assert [chunk.context for chunk in found] == [None] + ["port,note,tide"] * (len(found) - 1)
    assert {chunk.kind for chunk in found} == {"table"}


def test_a_header_of_more_than_half_the_budget_is_left_out_and_noted():
    chunker = get_chunker("recursive", chunk_size=80, tokenizer="character", context_in_budget=True)
    result = chunker.chunk_document(markdown(TIDES))
    assert not any(HEADER in (chunk.context or "") for chunk in result.chunks)
    assert result.notes["table header too long for the context"]


# ------------------------------------------------------------------------------------------------------- budget

PIECES = (
    *("# Head\n\n", "\n## Deeper heading than that\n\n"),
    *("word ", "Sentence one. ", "日本語。", "👍🏽", "\n\n", "\n", " ", "\u0301"),
    *("\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", "```\ncode\n```\n", "a,b\n", '"c\nd",e\n', "<tr><td>1"),
    *("<table><tr><th>n</th></tr>", "</table>", "<h2>Head</h2>", "(", "12345", "  "),
)  # fmt: skip
MEDIA_TYPES = ["text/markdown", "text/plain", "text/html", "text/csv", "application/json", "text/x-python"]


@pytest.mark.parametrize(
    "tokenizer", ["cl100k_base", "character", Words()], ids=["cl100k", "character", "words"]
)
@pytest.mark.parametrize("name", CHUNKERS)
def test_context_and_text_together_stay_within_the_budget_where_they_share_it(name, tokenizer):
    @given(soup(PIECES, min_size=4), st.sampled_from(MEDIA_TYPES), st.integers(2, 60), st.booleans())
    def check(text, media_type, size, with_overlap):
        overlap = 0 if name == "whole" else size // 3 * with_overlap
        settings = {"chunk_size": size, "chunk_overlap": overlap, "tokenizer": tokenizer}
        chunker = get_chunker(name, **settings, context="full", context_in_budget=True)
        document = Document("d", text, media_type, title="Manual of the harbour")
        for chunk in chunker.chunk(document):
            assert chunker.counter.count(chunk.contextual_text) <= size or chunk.over_budget

    check()


@pytest.mark.parametrize("media_type", ["text/csv", "text/html", "text/markdown"])
def test_blocks_found_when_a_document_is_read_are_those_a_chunker_finds(media_type):
    raw = RawDocument("d", "a,b\n\n<table><tr><td>1</td></tr></table>\n\n# c\n", media_type)
    assert blocks_of(parse(raw, ParseSettings(markdown=False))) == parse(raw, ParseSettings()).blocks != ()
