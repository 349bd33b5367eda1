"""`heading`: one chunk per section as far as it fits, then its deeper headings, then the fallback."""

from __future__ import annotations

import pytest
from words import Words

from transforms.chunkers import get_chunker
from transforms.errors import ConfigError
from transforms.parsers import ParseSettings, parse
from transforms.records import Block, Document, RawDocument


def chunks(text, media_type="text/markdown", blocks=None, **settings):
    """The chunks of a Markdown text, which the chunker parses itself."""
    settings = {"tokenizer": "character", **settings}
    found = get_chunker("heading", **settings).chunk(Document("d", text, media_type, blocks=blocks))
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in found)
    held = {place for chunk in found for place in range(chunk.start, chunk.end)}
    assert all(place in held for place, character in enumerate(text) if not character.isspace())
    return found


def texts(*args, **settings):
    return [chunk.text for chunk in chunks(*args, **settings)]


def parents(found):
    """Title of each chunk's own heading -> that of the chunk it stands under."""
    path_of = {chunk.chunk_id: chunk.heading_path for chunk in found}
    return {
        chunk.heading_path[-1]: (path_of[chunk.parent_id][-1] if chunk.parent_id else None) for chunk in found
    }


def outline(found):
    return [(len(chunk.heading_path), chunk.heading_path[-1], chunk.lines[0]) for chunk in found]


# ------------------------------------------------------------------------------------------------------ sections


def test_a_heading_of_the_split_level_or_above_starts_a_section():
    text = "# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n# D\n\nd"
    assert texts(text, split_level=1) == ["# A\n\na\n\n## B\n\nb\n\n### C\n\nc", "# D\n\nd"]
    assert texts(text) == ["# A\n\na", "## B\n\nb\n\n### C\n\nc", "# D\n\nd"]
    assert texts(text, split_level=3) == ["# A\n\na", "## B\n\nb", "### C\n\nc", "# D\n\nd"]


def test_no_chunk_holds_such_a_heading_but_at_its_start():
    text = "# A\n\n## B\n\n## C\n\nlong text of c, long text\n\n### D\n\n# E"
    for size in range(5, 60):
        for chunk in chunks(text, chunk_size=size):
            assert "\n# " not in chunk.text
            assert "\n## " not in chunk.text


def test_a_section_within_the_budget_is_one_chunk():
    text = "# A\n\nOne. Two.\n\n## B\n\nThree. Four."
    first, second = chunks(text, chunk_size=19)
    assert (first.text, first.strategy) == ("# A\n\nOne. Two.", "heading")
    assert (second.text, second.strategy) == ("## B\n\nThree. Four.", "heading")


def test_a_larger_one_is_cut_at_its_deeper_headings_and_the_parts_are_joined_while_they_fit():
    text = "## A\n\naa\n\n### B\n\nbb\n\n### C\n\ncc\n\n#### D\n\ndd"
    assert texts(text, chunk_size=21) == ["## A\n\naa\n\n### B\n\nbb", "### C\n\ncc\n\n#### D\n\ndd"]
    assert texts(text, chunk_size=20) == ["## A\n\naa\n\n### B\n\nbb", "### C\n\ncc", "#### D\n\ndd"]
    assert {chunk.strategy for chunk in chunks(text, chunk_size=20)} == {"heading"}


def test_joined_parts_are_counted_anew_and_not_added_up():
    text = "## A\n\n### B\n\n### C\n\n### D"
    assert texts(text, chunk_size=8, tokenizer=Words()) == [text]
    assert texts(text, chunk_size=6, tokenizer=Words()) == ["## A\n\n### B\n\n### C", "### D"]


def test_a_part_that_is_still_too_large_goes_to_the_fallback():
    text = "## A\n\nOne two three. Four five six.\n\n### B\n\nb"
    found = chunks(text, chunk_size=20)
    assert [(chunk.text, chunk.strategy) for chunk in found] == [
        ("## A", "heading:recursive"),
        ("One two three.", "heading:recursive"),
        ("Four five six.", "heading:recursive"),
        ("### B\n\nb", "heading"),
    ]
    assert [chunk.heading_path for chunk in found] == [("A",), ("A",), ("A",), ("A", "B")]


@pytest.mark.parametrize("media_type", ["text/plain", "text/markdown"])
def test_a_document_without_headings_goes_to_the_fallback(media_type):
    found = chunks("One two three.\n\nFour five six.", media_type, chunk_size=20)
    assert [(chunk.text, chunk.strategy) for chunk in found] == [
        ("One two three.", "heading:recursive"),
        ("Four five six.", "heading:recursive"),
    ]
    assert all((chunk.heading_path, chunk.parent_id) == ((), None) for chunk in found)


def test_text_before_the_first_heading_is_a_section_without_one():
    first, second = chunks("Lead.\n\n# A\n\na")
    assert (first.text, first.heading_path, first.strategy) == ("Lead.", (), "heading")
    assert (second.text, second.heading_path) == ("# A\n\na", ("A",))


# ------------------------------------------------------------------------------------------------------ fallback


def test_the_fallback_has_the_size_overlap_and_tokenizer_of_the_chunker():
    fallback = get_chunker("heading", chunk_size=40, chunk_overlap=7, tokenizer="character").fallback
    assert (fallback.name, fallback.chunk_size, fallback.chunk_overlap) == ("recursive", 40, 7)
    assert fallback.tokenizer == "character"


@pytest.mark.parametrize("fallback", ["token", {"name": "token"}])
def test_another_fallback_is_named_in_its_chunks(fallback):
    found = chunks("# A\n\n" + "b" * 20, chunk_size=10, fallback=fallback)
    assert [chunk.text for chunk in found] == ["# A\n\nbbbbb", "b" * 10, "b" * 5]
    assert {chunk.strategy for chunk in found} == {"heading:token"}


def test_a_fallback_has_settings_of_its_own():
    fallback = {"name": "recursive", "separators": ["|"], "chunk_size": 4}
    assert texts("# A\n\naa|b|c", chunk_size=8, fallback=fallback) == ["# A", "aa|", "b|c"]


def test_overlap_is_the_fallbacks_and_stays_within_a_section():
    text = "# A\n\none two three four\n\n# B\n\nfive six seven eight"
    found = chunks(text, chunk_size=15, chunk_overlap=6)
    assert any(chunk.overlap for chunk in found)
    assert all(chunk.overlap <= 6 for chunk in found)
    assert not next(chunk for chunk in found if chunk.text.startswith("# B")).overlap


@pytest.mark.parametrize(
    ("setting", "settings"),
    [
        ("fallback.chunk_size", {"chunk_size": 10, "fallback": {"name": "token", "chunk_size": 11}}),
        ("fallback.chunk_size", {"chunk_size": 10, "fallback": get_chunker("token", tokenizer="character")}),
        ("fallback.tokenizer", {"fallback": {"name": "token", "tokenizer": "character"}}),
        ("fallback.chunk_size", {"fallback": {"name": "token", "chunk_size": 0}}),
        ("fallback.chunks", {"fallback": {"name": "token", "chunks": 1}}),
        ("fallback", {"fallback": "none such"}),
        ("fallback", {"fallback": {"name": "none such"}}),
        ("fallback", {"fallback": 3}),
        ("fallback", {"fallback": {"chunk_size": 10}}),
        ("split_level", {"split_level": 0}),
        ("split_level", {"split_level": 7}),
        ("min_chunk_size", {"min_chunk_size": -1}),
        ("min_chunks", {"min_chunks": 1}),
        ("chunk_overlap", {"chunk_size": 10, "chunk_overlap": 10}),
        ("chunk_size", {"chunk_size": 0, "fallback": {"name": "token"}}),
        ("tokenizer", {"tokenizer": "none such"}),
    ],
)
def test_settings_that_are_refused(setting, settings):
    with pytest.raises(ConfigError, match=f"^{setting}="):
        get_chunker("heading", **settings)


def test_a_fallback_of_a_fallback_is_named_by_the_outermost():
    text = "# A\n\n### B\n\n" + "b" * 12 + "\n\n### C\n\nc"
    found = chunks(text, chunk_size=12, fallback={"name": "heading", "split_level": 6, "fallback": "token"})
    assert {chunk.strategy for chunk in found} <= {"heading", "heading:heading"}
    assert [chunk.heading_path for chunk in found][-1] == ("A", "C")


# ------------------------------------------------------------------------------------------- headings without body


def test_headings_without_a_body_stand_alone():
    text = "Meeting notes, first draft.\n\n# Agenda\n\n# Actions\n\n## Owners\n"
    found = chunks(text, chunk_size=200)
    assert [chunk.start for chunk in found] == [0, 29, 39, 50]
    assert [chunk.heading_path for chunk in found] == [(), ("Agenda",), ("Actions",), ("Actions", "Owners")]
    assert [(chunk.kind, chunk.heading_level) for chunk in found] == [
        ("body", None),
        ("heading", 1),
        ("heading", 1),
        ("heading", 2),
    ]
    assert sum("Meeting notes, first draft." in chunk.text for chunk in found) == 1


def test_with_min_chunk_size_a_heading_without_a_body_joins_the_section_after_it():
    text = "# A\n\n## B\n\nb\n\n## C\n\n## D\n\n# E"
    assert texts(text) == ["# A", "## B\n\nb", "## C", "## D", "# E"]
    assert texts(text, min_chunk_size=1) == ["# A\n\n## B\n\nb", "## C\n\n## D\n\n# E"]


def test_it_stands_alone_where_both_do_not_fit():
    assert texts("# A\n\n## B\n\nbbbb", chunk_size=11, min_chunk_size=1) == ["# A", "## B\n\nbbbb"]


# -------------------------------------------------------------------------------------------- headings of CommonMark


def test_hash_lines_in_code_are_no_headings():
    text = (
        "# Install\n\n```bash\n# not a heading: update the index\napt-get update\n```\n\n~~~text\n## nor this\n"
        "``` still inside\n~~~\n\n````markdown\n```python\n# inner comment\n```\n# example inside the outer fence\n"
        "````\n\n1. Run the script:\n\n    ```sh\n    # inside a list item\n    ./run.sh\n    ```\n\n"
        "``` not a close\n# inside a fence with an info string\n```\n\n    # four spaces: indented code\n\n"
        "   ### Three spaces is still a heading\n\n## Next\n\nDone.\n"
    )
    first, second = chunks(text, chunk_size=2000)
    assert (first.start, second.start) == (0, text.index("## Next"))
    assert (first.heading_path, second.heading_path) == (("Install",), ("Install", "Next"))
    assert outline(chunks(text, chunk_size=2000, split_level=6)) == [
        (1, "Install", 1),
        (2, "Three spaces is still a heading", 33),
        (2, "Next", 35),
    ]


def test_headings_in_comments_and_html_are_none_and_the_comment_is_kept():
    text = (
        "# Guide\n\n<!-- TODO\n# Old heading that was commented out\nDraft title\n===\n-->\n\n"
        "## Setup <!-- review in March -->\n\nText A.\n\n<!-- one line --> \n\n### Details\n\n<div>\n"
        "## raw html block, not a heading\n</div>\n\n## After div\n\nText B.\n"
    )
    found = chunks(text, chunk_size=2000, split_level=6)
    assert [(chunk.heading_path[-1].partition(" <!--")[0], chunk.lines[0]) for chunk in found] == [
        ("Guide", 1),
        ("Setup", 9),
        ("Details", 15),
        ("After div", 21),
    ]
    assert "# Old heading that was commented out" in found[0].text
    assert "## raw html block, not a heading" in found[2].text


@pytest.mark.parametrize(
    "text",
    [
        "# One\nbody one\n\n## Two\nbody two\n",
        "# One\r\nbody one\r\n\r\n## Two\r\nbody two\r\n",
        "# One\rbody one\r\r## Two\rbody two\r",
        "# One\r\nbody\rmore\n## Two\nend",
        "One\r===\r\rTwo\r---\r",
    ],
    ids=["LF", "CRLF", "CR", "mixed", "underlined"],
)
@pytest.mark.parametrize("normalised", [True, False])
def test_lines_end_in_any_of_the_three_ways(text, normalised):
    if normalised:
        document = parse(RawDocument("d", text.encode(), "text/markdown"), ParseSettings())
    else:
        document = Document("d", text, "text/markdown")
    one, two = get_chunker("heading", chunk_size=2000, tokenizer="character").chunk(document)
    assert (one.heading_path, two.heading_path) == (("One",), ("One", "Two"))
    assert (one.lines[0], two.lines[0]) == (1, 4)
    for chunk in (one, two):
        assert chunk.text == document.text[chunk.start : chunk.end]


def test_tabs_wide_spaces_blank_lines_and_indentation_are_kept():
    text = (
        "# Build\n\n```make\nall:\n\tcc -o app main.c\n```\n\nPrice: 12\u00a0000 kr\n\n"
        "- outer\n    - inner\n        - deep\n"
    )
    assert texts(text, chunk_size=400) == [text.rstrip()]


# ------------------------------------------------------------------------------------------------------- hierarchy


def test_the_parent_is_the_nearest_heading_of_a_smaller_level_however_levels_are_skipped():
    text = (
        "# A\n\n### A.x\n\nx\n\n### A.y\n\ny\n\n#### A.y.z\n\nz\n\n## A.b\n\nb\n\n#### A.b.deep\n\nd\n\n"
        "# B\n\n##### B.five\n\nfive\n"
    )
    found = chunks(text, chunk_size=2000, split_level=6)
    assert parents(found) == {
        "A": None,
        "A.x": "A",
        "A.y": "A",
        "A.y.z": "A.y",
        "A.b": "A",
        "A.b.deep": "A.b",
        "B": None,
        "B.five": "B",
    }
    assert [chunk.index for chunk in found] == list(range(8))
    assert next(chunk for chunk in found if chunk.text.endswith("\ny")).heading_path == ("A", "A.y")


def test_pieces_of_a_section_stand_under_the_chunk_with_its_heading():
    found = chunks("# A\n\none two three four five six", chunk_size=12)
    assert len(found) > 2
    assert found[0].parent_id is None
    assert {chunk.parent_id for chunk in found[1:]} == {found[0].chunk_id}
    assert {chunk.heading_path for chunk in found} == {("A",)}


def test_headings_given_as_blocks_are_taken_as_they_are():
    text = "Title\n\nbody"
    (chunk,) = chunks(text, "text/plain", (Block("heading", 0, 5, level=1),))
    assert (chunk.heading_path, chunk.strategy) == (("Title",), "heading")


def test_the_heading_path_is_on_every_piece_of_a_table_and_survives_it():
    text = "# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nafter the table"
    found = chunks(text, chunk_size=22)
    assert len(found) > 2
    assert {chunk.heading_path for chunk in found} == {("A",)}


# --------------------------------------------------------------------------------------------------------- others


def test_defaults():
    chunker = get_chunker("heading")
    assert (chunker.chunk_size, chunker.chunk_overlap, chunker.tokenizer) == (256, 0, "cl100k_base")
    assert (chunker.split_level, chunker.fallback.name, chunker.min_chunk_size) == (2, "recursive", 0)
    assert chunker.fallback.chunk_size == 256


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "character"])
def test_spellings_of_special_tokens_are_text(name):
    text = "# <|endoftext|>\n\nStop at <|im_start|>user<|im_end|>; others use [CLS] [SEP] or <s> </s> <unk>. End."
    found = chunks(text, chunk_size=12, tokenizer=name)
    assert found[0].heading_path == ("<|endoftext|>",)
    assert "".join("".join(chunk.text for chunk in found).split()) == "".join(text.split())


def test_what_is_over_the_budget_of_the_fallback_but_within_the_chunkers_own_is_not_marked():
    fallback = {"name": "recursive", "chunk_size": 5}
    chunker = get_chunker("heading", chunk_size=12, tokenizer="character", fallback=fallback)
    chunks = chunker.chunk(Document("d", "# A\n\nword 👩‍👩‍👧‍👦 word word\n", "text/markdown"))
    assert [chunk.token_count for chunk in chunks if chunk.token_count > 5] == [7]
    assert not any(chunk.over_budget for chunk in chunks)
