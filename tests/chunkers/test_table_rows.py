"""Rows become sentences with the names of their columns, and keep their place in the source."""

from __future__ import annotations

import pytest

from transforms.chunkers.table_rows import TableRowsChunker
from transforms.records import Block, Document, Location

CSV = "item,price\n007,12\nrope,\nnet,3,spare\n"


def chunks(text, media_type="text/csv", blocks=None, **settings):
    chunker = TableRowsChunker(**{"tokenizer": "character", "chunk_size": 100, **settings})
    return chunker.chunk(Document("d", text, media_type, blocks=blocks))


def test_each_value_is_told_with_the_name_of_its_column_and_nothing_is_dropped():
    (chunk,) = chunks(CSV, chunk_size=200)
    assert chunk.text == (
        "Row 0, item: 007\nRow 0, price: 12\nRow 1, item: rope\nRow 1, price:\n"
        "Row 2, item: net\nRow 2, price: 3\nRow 2, column_2: spare"
    )
    assert (chunk.is_derived, chunk.kind, chunk.strategy) == (True, "table", "table_rows")
    assert chunk.spans == ((0, len(CSV) - 1),)


def test_white_space_of_a_value_is_kept_but_at_the_end_of_a_chunk():
    assert chunks("a,b\n 1 , 2 \n")[0].text == "Row 0, a:  1 \nRow 0, b:  2"


def test_rows_are_packed_to_the_budget_and_each_chunk_has_the_span_of_its_rows():
    found = chunks(CSV, chunk_size=66)
    assert [CSV[chunk.start : chunk.end] for chunk in found] == ["item,price\n007,12\nrope,", "net,3,spare"]
    assert all(chunk.token_count == len(chunk.text) <= 66 for chunk in found)


def test_rows_per_chunk_fixes_their_number():
    found = chunks(CSV, chunk_size=500, rows_per_chunk=1)
    assert [CSV[chunk.start : chunk.end] for chunk in found] == ["item,price\n007,12", "rope,", "net,3,spare"]


def test_a_fixed_number_of_rows_does_not_pass_the_budget():
    assert [chunk.text.count("item") for chunk in chunks(CSV, chunk_size=66, rows_per_chunk=3)] == [2, 1]


def test_a_row_too_long_in_sentences_is_cut_as_it_stands_in_the_source():
    text = "a,b\n1,2\n" + "long " * 20 + ",3\n4,5\n"
    chunker = TableRowsChunker(tokenizer="character", chunk_size=40)
    result = chunker.chunk_document(Document("d", text, "text/csv"))
    kinds = [(chunk.is_derived, chunk.strategy) for chunk in result.chunks]
    assert kinds[0] == kinds[-1] == (True, "table_rows")
    assert set(kinds[1:-1]) == {(False, "table_rows:recursive")}
    assert result.chunks[-1].text == "Row 2, a: 4\nRow 2, b: 5"
    assert result.notes == {"row too long in sentences": 1}
    assert result.lost == 0


def test_columns_whose_names_pass_the_budget_leave_every_row_to_the_fallback():
    text = ",".join(f"column {n}" for n in range(50)) + "\n1\n2\n"
    assert {chunk.is_derived for chunk in chunks(text, chunk_size=30)} == {False}


@pytest.mark.parametrize("text", ["item,price\n", "| a | b |\n|---|---|\n"])
def test_a_table_without_rows_is_covered_as_it_stands(text):
    media_type = "text/csv" if "," in text else "text/markdown"
    assert [(chunk.text, chunk.is_derived) for chunk in chunks(text, media_type)] == [(text.strip(), False)]


def test_what_is_in_no_table_goes_to_the_fallback():
    text = "# Fares\n\nPay on board.\n\n| who | fare |\n|---|---|\n| adult | 12.50 |\n\nKeep the ticket.\n"
    found = chunks(text, "text/markdown", chunk_size=60)
    assert [(chunk.text, chunk.strategy) for chunk in found] == [
        ("# Fares\n\nPay on board.", "table_rows:recursive"),
        ("Row 0, who: adult\nRow 0, fare: 12.50", "table_rows"),
        ("Keep the ticket.", "table_rows:recursive"),
    ]
    assert {chunk.heading_path for chunk in found} == {("Fares",)}


def test_an_html_table_has_its_caption_in_its_first_chunk():
    text = "<table><caption>Fares</caption><tr><th>who</th></tr><tr><td>adult</td></tr><tr><td>dog</td></tr></table>"
    found = chunks(text, "text/html", rows_per_chunk=1)
    assert [chunk.text for chunk in found] == ["Fares\nRow 0, who: adult", "Row 1, who: dog"]
    assert "".join(text[chunk.start : chunk.end] for chunk in found) == text


def test_images_and_positions_of_a_row_stay_with_it():
    lines = ["| ship | berth |", "|---|---|", "| Aurora | 1 |", "| Fram | 2 |"]
    text, blocks = "\n".join(lines), []
    for number, line in enumerate(lines):
        start = text.index(line)
        images = (f"{number}.png",)
        blocks.append(
            Block("table_row", start, start + len(line), locations=(Location(number + 1),), images=images)
        )
    found = chunks(text, "text/markdown", tuple(blocks), rows_per_chunk=1)
    assert [chunk.images for chunk in found] == [("0.png", "1.png", "2.png"), ("3.png",)]
    assert [[place.page for place in chunk.locations] for chunk in found] == [[1, 2, 3], [4]]
    assert [chunk.text.splitlines()[0] for chunk in found] == ["Row 0, ship: Aurora", "Row 1, ship: Fram"]


def test_context_and_sentences_share_the_budget_where_they_are_told_to():
    settings = {"tokenizer": "cl100k_base", "chunk_size": 60, "context_in_budget": True}
    found = chunks("port,tide\n" + "".join(f"p{n},{n}.5\n" for n in range(30)), **settings)
    count = TableRowsChunker().counter.count
    assert all(count(chunk.contextual_text) <= 60 for chunk in found)
