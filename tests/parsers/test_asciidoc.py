"""AsciiDoc gives its section titles as headings, and nothing that only looks like one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soups import soup

from transforms.chunkers import get_chunker
from transforms.parsers import ParseSettings, parse
from transforms.parsers.asciidoc import parse_asciidoc
from transforms.records import RawDocument, Source

MANUAL = (
    "= Harbour Manual\n:toc:\n\n== Tides\n\n[source,asciidoc]\n----\n== Not a section\n----\n\n====\n\n"
    "== Not a section either\n\n====\n\n....\n== literal\n....\n\n////\n== inside a comment block\n////\n\n"
    "// == commented out\n\n=== Springs\n\nText about springs.\n\n== Moorings\n\nText about moorings.\n"
)
PIECES = (
    *(
        "= a\n",
        "abcd\n",
        "~~~\n",
        "ifdef::x[]\n",
        "----------\n",
        "== b\n",
        "====\n",
        "----\n",
        "--\n",
        "....\n",
        "////\n",
        "|===\n",
        "```c\n",
        "```\n",
        "[a]\n",
        ".b\n",
    ),
    *(
        "* c\n",
        "d:: e\n",
        "+\n",
        ":f: g\n",
        "// h\n",
        "i\n",
        "\n",
        "\r\n",
        "\r",
        " ",
        "===== \n",
        "=\n",
        "\u2028",
    ),
)


def document(text):
    return parse(RawDocument("d", text, source=Source(uri="manual.adoc")), ParseSettings())


def found(text):
    return [(block.kind, text[block.start : block.end]) for block in parse_asciidoc(text)[0]]


def headings(text):
    return [block.title for block in parse_asciidoc(text)[0] if block.kind == "heading"]


def test_titles_are_found_with_their_lines_and_none_inside_delimited_blocks():
    blocks = [block for block in document(MANUAL).blocks if block.kind == "heading"]
    assert [(block.title, 1 + MANUAL.count("\n", 0, block.start)) for block in blocks] == [
        ("Harbour Manual", 1),
        ("Tides", 4),
        ("Springs", 27),
        ("Moorings", 31),
    ]
    assert [block.level for block in blocks] == [1, 2, 3, 2]


def test_the_heading_path_nests_by_the_number_of_signs():
    chunks = get_chunker("heading", chunk_size=2000, split_level=6, tokenizer="character").chunk(
        document(MANUAL)
    )
    paths = {
        text: chunk.heading_path
        for chunk in chunks
        for text in ("springs.", "moorings.")
        if text in chunk.text
    }
    assert paths == {
        "springs.": ("Harbour Manual", "Tides", "Springs"),
        "moorings.": ("Harbour Manual", "Moorings"),
    }
    assert "".join("".join(chunk.text for chunk in chunks).split()) == "".join(MANUAL.split())


def test_the_header_is_front_matter_and_gives_the_document_its_title():
    read = document("// a comment\n= Manual\nA. Author\n:toc: left\n:icons:\n\n:not: header\n\ntext\n")
    assert read.title == "Manual"
    assert read.metadata["front_matter"] == {"title": "Manual", "toc": "left", "icons": ""}


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("[source,c]\n.Caption\n----\na\n\nb\n----\nc\n", ["code", "paragraph"]),
        ("|===\n| a | b\n\n| c | d\n|===\n", ["table"]),
        ("____\na\n____\n****\nb\n****\n", ["quote", "other"]),
        ("* a\n* b\n+\nc\n\nd:: e\n", ["list_item", "list_item", "list_item"]),
        ("```c\na\n```\n\nb\n", ["code", "paragraph"]),
        ("a\n----\nb\n----\n", ["paragraph", "code"]),
        ("--\na\n\n== b\n--\n", ["paragraph", "heading"]),
    ],
)
def test_delimited_blocks_lists_and_paragraphs_have_their_kinds(text, kinds):
    assert [kind for kind, _ in found(text)][: len(kinds)] == kinds


def test_a_block_begins_with_its_attributes_and_caption():
    assert found("[source,c]\n.Caption\n----\na\n----\n") == [("code", "[source,c]\n.Caption\n----\na\n----")]


@pytest.mark.parametrize(
    "text",
    ["==no space", "text\n== in a paragraph", "======= seven", "----\n== never closed", " == indented", "=="],
)
def test_what_is_no_title_is_no_heading(text):
    assert headings(text) == []


def test_titles_of_two_lines_have_the_level_of_their_underline():
    text = (
        "tide(1)\n=======\n:toc:\n\nNAME\n----\ntide - tells the tides\n\n"
        "[[opts]]\nOPTIONS\n-------\n\nOf ports\n~~~~~~~~~\ntext\n\nOf days\n^^^^^^\n\nOf hours\n++++++++\nend\n"
    )
    blocks = [block for block in parse_asciidoc(text)[0] if block.kind == "heading"]
    assert [(block.level, block.title) for block in blocks] == [
        *((1, "tide(1)"), (2, "NAME"), (2, "OPTIONS"), (3, "Of ports"), (4, "Of days"), (5, "Of hours")),
    ]
    assert text[blocks[1].start : blocks[1].end] == "NAME\n----"
    assert document(text).metadata["front_matter"] == {"title": "tide(1)", "toc": ""}
    assert headings(text.replace("\n", "\r\n")) == [block.title for block in blocks]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a\n----\nb\n----\n",
            "Seven\n=======\n",
            "text\nTides\n-----\n",
            ".Tides\n------\n",
            "****\n----\n",
        ),
        *("----\nTides\n=====\n----\n", "* Tides\nSprings\n-------\n", "Tides\n--~--\n", "[a]\n---\n"),
        *("* a\n\nb\n+\nc\n", "ok\n--\nb\n--\n", "ifdef::x[]\n----------\ncode\n----------\n"),
    ],
)
def test_a_delimiter_below_a_line_of_another_length_or_of_no_title_is_no_underline(text):
    assert headings(text) == []


def test_a_title_may_follow_an_anchor_or_another_title():
    assert headings("[[a]]\n== b\n== c\ntext") == ["b", "c"]


@given(soup(PIECES) | st.text(max_size=40))
def test_every_character_of_any_text_that_is_not_white_space_is_in_one_block(text):
    blocks = parse_asciidoc(text)[0]
    assert all(before.end <= after.start for before, after in pairwise(blocks))
    assert all(text[block.start : block.end].strip() for block in blocks)
    held = 0
    for block in blocks:
        assert not text[held : block.start].strip()
        held = block.end
    assert not text[held:].strip()
