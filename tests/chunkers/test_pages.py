"""The strategy `pages`."""

from __future__ import annotations

from transforms.chunkers import get_chunker
from transforms.records import Block, Document, Location


def cut(text, size=100, blocks=None, **settings):
    settings = {"tokenizer": "character", **settings}
    return get_chunker("pages", chunk_size=size, **settings).chunk(Document("d", text, blocks=blocks))


def texts(*args, **settings):
    return [chunk.text for chunk in cut(*args, **settings)]


def paged(*pages):
    """A text of paragraphs, and blocks that stand on some pages."""
    blocks, start = [], 0
    for place, numbers in enumerate(pages):
        locations = tuple(map(Location, numbers))
        blocks.append(Block("paragraph", start, start + 6, locations=locations))
        start += 8
        assert place < 10
    return "\n\n".join(f"Text {place}" for place in range(len(pages))), tuple(blocks)


def test_each_page_is_a_chunk_with_its_number():
    text, blocks = paged([1], [1], [2], [5])
    chunks = cut(text, blocks=blocks)
    assert [chunk.text for chunk in chunks] == ["Text 0\n\nText 1", "Text 2", "Text 3"]
    assert [[location.page for location in chunk.locations] for chunk in chunks] == [[1], [2], [5]]


def test_what_runs_over_the_end_of_a_page_is_on_both():
    text, blocks = paged([1], [1, 2], [2], [3])
    assert texts(text, blocks=blocks) == ["Text 0\n\nText 1\n\nText 2", "Text 3"]


def test_blocks_without_a_page_stay_with_the_one_before():
    text, blocks = paged([1], [], [2])
    assert texts(text, blocks=blocks) == ["Text 0\n\nText 1", "Text 2"]


def test_a_text_without_locations_has_pages_between_form_feeds():
    assert texts("One.\n\x0cTwo.\n\nMore.\x0c\x0cThree.") == ["One.", "Two.\n\nMore.", "Three."]


def test_a_page_over_the_budget_is_cut_and_shares_nothing_with_the_next():
    assert texts("One. Two. Three.\x0cFour.", 12, chunk_overlap=5) == ["One. Two.", "Two. Three.", "Four."]


def test_a_text_without_pages_is_one():
    assert texts("One.\n\nTwo.") == ["One.\n\nTwo."]
