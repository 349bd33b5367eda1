"""`heading_aware`: a chunk for each heading, the body below it packed by blocks as its children."""

from __future__ import annotations

from itertools import pairwise

import pytest

from transforms.chunkers import get_chunker
from transforms.errors import ConfigError
from transforms.records import Block, Document


def result(text, blocks=None, media_type="text/markdown", **settings):
    settings = {"chunk_overlap": 0, "tokenizer": "character", **settings}
    return get_chunker("heading_aware", **settings).chunk_document(
        Document("d", text, media_type, blocks=blocks)
    )


def chunks(text, blocks=None, **settings):
    found = list(result(text, blocks, **settings).chunks)
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in found)
    held = {place for chunk in found for place in range(chunk.start, chunk.end)}
    assert all(place in held for place, character in enumerate(text) if not character.isspace())
    return found


def texts(*args, **settings):
    return [chunk.text for chunk in chunks(*args, **settings)]


def tree(found):
    """Text of each chunk with that of the chunk it stands under."""
    text_of = {chunk.chunk_id: chunk.text for chunk in found}
    return [(chunk.text, text_of.get(chunk.parent_id)) for chunk in found]


def parts(*pieces):
    """A text of blocks with a blank line between them; a number is the level of a heading."""
    text, blocks = "", []
    for kind, content in pieces:
        text += "\n\n" if text else ""
        level = kind if isinstance(kind, int) else None
        name = "heading" if isinstance(kind, int) else kind
        blocks.append(Block(name, len(text), len(text) + len(content), level=level))
        text += content
    return text, tuple(blocks)


# ------------------------------------------------------------------------------------------------------- headings


def test_a_heading_is_a_chunk_of_its_own_with_its_level():
    heading, body = chunks("## Setup\n\nText.")
    assert (heading.text, heading.kind, heading.heading_level) == ("## Setup", "heading", 2)
    assert (body.text, body.kind, body.heading_level) == ("Text.", "body", None)
    assert heading.heading_path == body.heading_path == ("Setup",)
    assert {heading.strategy, body.strategy} == {"heading_aware"}


def test_a_heading_stands_under_the_nearest_one_of_a_smaller_level_and_a_body_under_its_heading():
    text = "Lead.\n\n# A\n\na\n\n## B\n\nb\n\n## C\n\n# D\n\nd"
    assert tree(chunks(text)) == [
        ("Lead.", None),
        ("# A", None),
        ("a", "# A"),
        ("## B", "# A"),
        ("b", "## B"),
        ("## C", "# A"),
        ("# D", None),
        ("d", "# D"),
    ]


def test_skipped_levels_are_fine():
    text = "# A\n\n### X\n\nx\n\n### Y\n\ny\n\n#### Z\n\n## B\n\n#### E\n\n# F\n\n##### G\n\ng"
    assert dict(tree(chunks(text))) == {
        "# A": None,
        "### X": "# A",
        "x": "### X",
        "### Y": "# A",
        "y": "### Y",
        "#### Z": "### Y",
        "## B": "# A",
        "#### E": "## B",
        "# F": None,
        "##### G": "# F",
        "g": "##### G",
    }


def test_a_heading_closes_open_ones_of_its_level_and_deeper():
    text = "### Deep\n\n# Top\n\n### Deep again\n\n## Middle\n\ntext"
    found = chunks(text)
    assert [chunk.heading_path for chunk in found] == [
        ("Deep",),
        ("Top",),
        ("Top", "Deep again"),
        ("Top", "Middle"),
        ("Top", "Middle"),
    ]
    assert tree(found)[-1] == ("text", "## Middle")


def test_levels_are_clamped_and_that_is_recorded():
    text, blocks = parts((0, "Zero"), (9, "Nine"), (6, "Six"), (-3, "Minus"))
    found = result(text, blocks)
    assert [chunk.heading_level for chunk in found.chunks] == [1, 6, 6, 1]
    assert found.notes == {"clamped heading level": 3}
    assert result(*parts((1, "One"), (6, "Six"))).notes == {}


def test_blank_headings_are_dropped_and_change_nothing():
    text = "# A\n\na\n\n#\n\nb\n\n## \n\nc"
    with_blank = chunks(text)
    assert [chunk.heading_path for chunk in with_blank] == [("A",)] * len(with_blank)
    assert all(parent == "# A" for _, parent in tree(with_blank)[1:])
    given, blocks = parts((1, "A"), (2, " "), ("paragraph", "a"), ("paragraph", "\t"), ("paragraph", "b"))
    assert tree(chunks(given, blocks)) == [("A", None), ("a\n\n\t\n\nb", "A")]


def test_a_heading_over_budget_is_cut_like_a_body_and_its_pieces_stay_headings():
    text, blocks = parts((1, "A long heading. With two sentences."), ("paragraph", "Body."))
    found = chunks(text, blocks, chunk_size=20)
    assert [(chunk.text, chunk.kind, chunk.heading_level) for chunk in found] == [
        ("A long heading.", "heading", 1),
        ("With two sentences.", "heading", 1),
        ("Body.", "body", None),
    ]
    assert found[2].parent_id == found[0].chunk_id
    assert {chunk.heading_path for chunk in found} == {("A long heading. With two sentences.",)}


# ----------------------------------------------------------------------------------------------------------- body


def test_blocks_are_collected_until_the_next_would_pass_the_budget_separators_included():
    text = "# A\n\nfour\n\nfive5\n\nsix666"
    assert texts(text, chunk_size=19) == ["# A", "four\n\nfive5\n\nsix666"]
    assert texts(text, chunk_size=18) == ["# A", "four\n\nfive5", "six666"]
    assert texts(text, chunk_size=10) == ["# A", "four", "five5", "six666"]


def test_nothing_is_joined_across_a_heading():
    assert texts("a\n\n# B\n\nc\n\n# D", chunk_size=500) == ["a", "# B", "c", "# D"]


def test_a_block_over_budget_is_cut_by_sentences_and_then_the_ladder():
    text = "# A\n\nOne sentence\nover lines. Two\nsentences here. Three, which is long, has clauses."
    assert texts(text, chunk_size=26) == [
        "# A",
        "One sentence\nover lines.",
        "Two\nsentences here.",
        "Three, which is long,",
        "has clauses.",
    ]


def test_a_table_is_cut_by_rows_and_code_by_lines():
    text = "# A\n\n| a | b |\n|---|---|\n| 1. x | 2 |\n| 3 | 4 |\n\n```\nx = 1. y\nz = 2\n```"
    assert texts(text, chunk_size=24) == [
        "# A",
        "| a | b |\n|---|---|",
        "| 1. x | 2 |\n| 3 | 4 |",
        "```\nx = 1. y\nz = 2\n```",
    ]
    assert texts(text, chunk_size=16)[-2:] == ["```\nx = 1. y", "z = 2\n```"]


def test_a_chunk_of_one_table_or_code_block_has_its_kind():
    found = chunks(
        "# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\na text of its own\n\n```\ncode\n```", chunk_size=30
    )
    assert [chunk.kind for chunk in found] == ["heading", "table", "body", "code"]


def test_list_items_are_packed_like_other_blocks():
    assert texts("# A\n\n- one\n- two\n- three", chunk_size=12) == ["# A", "- one\n- two", "- three"]


def test_a_block_after_the_indentation_of_its_line_takes_the_indentation_along():
    text = "abcdefgh\n  ij"
    blocks = (Block("paragraph", 0, 8), Block("paragraph", 11, 13))
    assert texts(text, blocks, chunk_size=6) == ["abcdef", "gh", "  ij"]


def test_a_part_of_an_overlap_with_more_tokens_than_all_of_it_is_not_taken():
    text = "x" * 40 + "<div>"
    document = Document("d", text, blocks=(Block("paragraph", 0, 38), Block("paragraph", 38, 41)))
    chunker = get_chunker("heading_aware", chunk_size=2, chunk_overlap=1, tokenizer="o200k_base")
    chunks = chunker.chunk(document)
    assert chunks[4].text == "xx<"
    for before, after in pairwise(chunks):
        assert chunker.counter.count(text[after.start : before.end]) <= 1


def test_text_between_blocks_is_kept():
    text = "# A\n\nin a block\n\nin none\n\nin a block"
    blocks = (
        Block("heading", 0, 3, level=1, title="A"),
        Block("paragraph", 5, 15),
        Block("paragraph", len(text) - 10, len(text)),
    )
    assert texts(text, blocks, chunk_size=500) == ["# A", text[5:]]


def test_a_document_without_headings_is_packed_by_its_paragraphs():
    text = "One one.\n\nTwo two.\n\nThree three."
    for media_type in ("text/plain", "text/markdown"):
        found = chunks(text, media_type=media_type, chunk_size=20)
        assert [chunk.text for chunk in found] == ["One one.\n\nTwo two.", "Three three."]
        assert all((chunk.parent_id, chunk.heading_path) == (None, ()) for chunk in found)


def test_a_document_of_headings_alone():
    assert tree(chunks("# A\n\n## B\n\n# C")) == [("# A", None), ("## B", "# A"), ("# C", None)]


# -------------------------------------------------------------------------------------------------------- overlap


def test_overlap_begins_the_next_chunk_of_the_same_section_only():
    text = "# A\n\nOne two.\n\nThree four.\n\n# B\n\nFive six.\n\nSeven eight."
    found = chunks(text, chunk_size=22, chunk_overlap=9)
    assert [chunk.text for chunk in found] == [
        "# A",
        "One two.\n\nThree four.",
        "# B",
        "Five six.",
        "six.\n\nSeven eight.",
    ]
    for chunk in found:
        if chunk.kind == "heading" or found[chunk.index - 1].kind == "heading":
            assert chunk.overlap == 0


def test_overlap_never_chains_and_is_never_larger_than_asked():
    text = "# A\n\n" + "\n\n".join(f"Paragraph {number}. And more of it." for number in range(9))
    found = chunks(text, chunk_size=70, chunk_overlap=30)
    assert any(chunk.overlap for chunk in found)
    assert all(chunk.overlap <= 30 for chunk in found)
    assert all(first.end <= third.start for first, third in zip(found, found[2:], strict=False))


def test_overlap_shrinks_so_that_the_chunk_stays_in_its_budget():
    text = "# A\n\nOne two three four.\n\n" + "x" * 25
    assert texts(text, chunk_size=26, chunk_overlap=20) == ["# A", "One two three four.", "x" * 25]


# ------------------------------------------------------------------------------------------------------- settings


def test_defaults():
    chunker = get_chunker("heading_aware")
    assert (chunker.chunk_size, chunker.chunk_overlap, chunker.tokenizer) == (512, 64, "cl100k_base")


def test_the_default_overlap_is_half_of_a_small_budget():
    assert get_chunker("heading_aware", chunk_size=50).chunk_overlap == 25
    assert get_chunker("heading_aware", chunk_size=1).chunk_overlap == 0
    assert get_chunker("heading_aware", chunk_size=128).chunk_overlap == 64


@pytest.mark.parametrize("setting", ["split_level", "fallback", "separators"])
def test_settings_of_other_strategies_are_refused(setting):
    with pytest.raises(ConfigError, match=f"^{setting}=.*heading_aware has no such setting"):
        get_chunker("heading_aware", **{setting: 1})


def test_an_overlap_without_progress_is_refused():
    with pytest.raises(ConfigError, match=r"^chunk_overlap=512: .* less than chunk_size=512"):
        get_chunker("heading_aware", chunk_overlap=512)


def test_lines_pages_and_rights_are_on_every_chunk():
    document = Document("d", "# A\n\none\n\ntwo\n", "text/markdown", acl_labels=("staff",), tenant_id="t")
    found = get_chunker("heading_aware", chunk_size=5, tokenizer="character", chunk_overlap=0).chunk(document)
    assert [(chunk.text, chunk.lines) for chunk in found] == [
        ("# A", (1, 1)),
        ("one", (3, 3)),
        ("two", (5, 5)),
    ]
    assert {(chunk.acl_labels, chunk.tenant_id) for chunk in found} == {(("staff",), "t")}


def test_nothing_stands_under_a_heading_of_white_space():
    text = "One\n\n\nbody\n"
    blocks = (Block("heading", 0, 3, level=1, title="One"), Block("heading", 4, 5, level=2, title="Blank"))
    found = get_chunker("heading_aware", tokenizer="character").chunk(Document("d", text, blocks=blocks))
    assert [(chunk.text, chunk.kind) for chunk in found] == [("One", "heading"), ("body", "body")]
    assert found[1].parent_id == found[0].chunk_id
