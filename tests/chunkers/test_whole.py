"""The strategy `whole`."""

from __future__ import annotations

from transforms.chunkers import get_chunker
from transforms.records import Document


def cut(text, size):
    return get_chunker("whole", chunk_size=size, tokenizer="character").chunk(Document("d", text))


def test_a_document_is_one_chunk_which_is_marked_if_it_is_too_large():
    for size, over_budget in ((8, False), (7, True), (1, True)):
        (chunk,) = cut("\n\nOne. Two\n", size)
        assert (chunk.text, chunk.over_budget) == ("One. Two", over_budget)


def test_only_an_endless_gap_divides_a_document():
    assert [chunk.text for chunk in cut("One" + " " * 100_000 + "two", 10)] == ["One", "two"]
    assert len(cut("One" + " " * 99_000 + "two", 10)) == 1


def test_a_blank_document_has_no_chunk():
    assert cut(" \n", 10) == []
