"""reStructuredText: which lines are titles, and what stands between them."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from soups import soup

from transforms.chunkers import get_chunker
from transforms.parsers import ParseSettings, parse
from transforms.parsers.restructured_text import parse_restructured_text
from transforms.records import RawDocument, Source

MANUAL = """\
.. SPDX-License-Identifier: CC0-1.0
.. _manual:

==============
Harbour Manual
==============

:Author: The keeper

Tides
=====

The bar is passable at half flood::

    Not a title
    ===========

    0.4 m

.. code-block:: rst
   :linenos:

   Not a title either
   ------------------

.. note::

   High water is told
   in UTC.

+-------+-------+
| port  | tide  |
+=======+=======+
| north | 0.4 m |
+-------+-------+

Springs
~~~~~~~

=====  =====
month  range
=====  =====
June   4.1 m

July   4.2 m
=====  =====

Text about springs.

2. Moorings
===========

- A buoy.
- Another one,
  farther out.

1. First.
2. Second.

----

.. Commented out
   =============

>>> tide("north")
0.4
"""
TITLES = [
    (1, "Harbour Manual", 4),
    (2, "Tides", 10),
    (3, "Springs", 37),
    (2, "2. Moorings", 50),
]
KINDS = (
    "other other heading list_item heading paragraph code code other paragraph table heading table paragraph heading "
    "list_item list_item list_item list_item other other code"
).split()


def blocks(text):
    return parse_restructured_text(text)[0]


def told(text):
    return [(block.kind, text[block.start : block.end]) for block in blocks(text)]


def titles(text):
    return [(block.level, block.title) for block in blocks(text) if block.kind == "heading"]


def document(text):
    return parse(RawDocument("d", text, source=Source(uri="manual.rst")), ParseSettings())


# Titles.


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_titles_are_found_with_their_lines_and_none_inside_other_blocks(newline):
    found = [block for block in blocks(MANUAL.replace("\n", newline)) if block.kind == "heading"]
    lines = [MANUAL.replace("\n", newline)[: block.start].count(newline) + 1 for block in found]
    assert [(block.level, block.title, line) for block, line in zip(found, lines, strict=True)] == TITLES


def test_the_heading_path_follows_the_levels():
    chunks = get_chunker("heading", chunk_size=2000, split_level=6, tokenizer="character").chunk(
        document(MANUAL)
    )
    paths = {chunk.heading_path for chunk in chunks}
    assert ("Harbour Manual", "Tides", "Springs") in paths
    assert ("Harbour Manual", "2. Moorings") in paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A\n=\n\nB\n-\n\nC\n=\n", [(1, "A"), (2, "B"), (1, "C")]),
        ("A\n-\n\nB\n=\n", [(1, "A"), (2, "B")]),
        ("===\n A\n===\n\nB\n===\n", [(1, "A"), (2, "B")]),
        ("A title\nof two lines\n============\n", []),
        ("Title\n====\nText at once.", [(1, "Title")]),
        ("Too short\n===\n", []),
        ("A\n=\n\nB\n-\n\nC\n~\n\nD\n^\n\nE\n'\n\nF\n+\n\nG\n#\n", [*enumerate("ABCDEF", 1), (6, "G")]),
        ("港の潮\n======\n", [(1, "港の潮")]),
        ("港の潮\n===\n", []),
        ("e\u0301\n=\n", [(1, "e\u0301")]),
        ("  Indented\n==========\n", []),
        ("- An item\n---------\n", []),
        (".. A comment\n============\n", []),
        ("==\nA\n--\n", []),
        ("1. One\n======\n", [(1, "1. One")]),
        ("A ``code`` *and* :ref:`label` of `text <url>`_\n" + "=" * 50, [(1, "A code and label of text")]),
        ("snake_case and 2*3*4\n" + "=" * 20, [(1, "snake_case and 2*3*4")]),
        ("=====\nAlone\n\n=====\n", []),
        ("x\n\n====", []),
    ],
)
def test_what_is_a_title_and_of_which_level(text, expected):
    assert titles(text) == expected


def test_a_title_above_all_others_is_that_of_the_document():
    assert document(MANUAL).title == "Harbour Manual"
    assert document("A\n=\n\nB\n=\n").title is None
    assert document("Words first.\n\nA\n=\n").title is None


# Other blocks.


def test_literal_blocks_tables_lists_and_paragraphs_have_their_kinds():
    assert [block.kind for block in blocks(MANUAL)] == KINDS


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("A::\n\n  x\n\n  y\n\nB", "  x\n\n  y"),
        ("::\n\n  x\n", "  x"),
        ("- A::\n\n    x\n\n- B", "    x"),
        ("- A\n  long::\n\n    x\n  more", "    x"),
        ("A::\n\n> x\n> y\n\nB", "> x\n> y"),
        ("A\n\n.. code:: python\n\n   x = 1\n\n   y = 2\n\nB", ".. code:: python\n\n   x = 1\n\n   y = 2"),
        (".. note::\n\n   A::\n\n     x\n", "     x"),
        (".. note::\n\n   .. code-block:: c\n\n      x\n\n   B\n", "   .. code-block:: c\n\n      x"),
        ("\t>>> x\n\t1\n", "\t>>> x\n\t1"),
    ],
)
def test_code_is_what_is_indented_after_two_colons_and_what_directives_say(text, code):
    assert [found for kind, found in told(text) if kind == "code"] == [code]


@pytest.mark.parametrize("text", ["A::\n\nB\n", "A::\n\n- b\n* c\n", "A::", "- A::\n\n  B\n"])
def test_what_is_not_indented_after_two_colons_is_no_code(text):
    assert not [found for kind, found in told(text) if kind == "code"]


def test_the_language_of_code_is_told():
    (block,) = blocks(".. code-block:: python\n   :caption: x\n\n   a = 1\n")
    assert block.attributes == {"language": "python"}


def test_a_figure_has_its_image_and_its_caption():
    (block, after) = blocks(".. figure:: quay.png\n   :alt: x\n\n   The quay.\n\nText.\n")
    assert (block.kind, block.images, after.kind) == ("figure", ("quay.png",), "paragraph")


def test_nothing_is_included_and_a_table_from_a_file_is_its_directive():
    file = "   :file: /etc/hostname\n"
    text = f".. include:: /etc/hostname\n.. csv-table:: T\n{file}.. raw:: html\n{file}"
    assert [kind for kind, _ in told(text)] == ["other", "table", "other"]


@pytest.mark.parametrize("text", ["+--+\n| a\n", "=== ===\n", "+--+", "=== ===\na b\n"])
def test_a_table_that_is_none_is_text(text):
    assert "table" not in [kind for kind, _ in told(text)]


# Laws.

PIECES = (
    *(
        "a",
        "A title",
        "text::",
        "::",
        "\n",
        "\n\n",
        "\n",
        "  ",
        "    ",
        "\t",
        "\r\n",
        "\r",
        " ",
        "- item",
        "1. item",
    ),
    *(
        "=====",
        "---",
        "==",
        "~~~~~~~",
        "=== ===",
        "+--+--+",
        "+==+==+",
        "| a|b |",
        "|",
        "+",
        ":field: x",
        ">>> x",
    ),
    *(
        ".. ",
        "..",
        ".. note::",
        ".. code-block:: c",
        ".. figure:: a.png",
        ".. table::",
        ".. _x:",
        "..\n",
        "`a <b>`_",
    ),
    *("港", "\u0301", "\x0c", "\u2028", "*em*", "``x``", ":", "\\"),
)


@given(soup(PIECES) | soup(PIECES, between="\n") | st.text(max_size=60))
@example(MANUAL)
def test_every_character_that_is_not_white_space_is_in_one_block(text):
    end = 0
    for block in blocks(text):
        assert not text[end : block.start].strip()
        assert text[block.start : block.end].strip()
        assert 1 <= (block.level or 1) <= 6
        end = block.end
    assert not text[end:].strip()


@pytest.mark.parametrize(
    "text",
    [
        "=== ===\n\n" * 30_000,
        "+--+\n" * 60_000,
        ".. note::\n" * 30_000,
        "a::\n\n" * 60_000,
        "a::\n\n" + "- b\n" * 60_000,
        "- b\n" * 60_000,
        "- b::\n" * 60_000 + "x",
        ":a" * 150_000,
        "`" * 300_000 + "\n" + "=" * 300_000,
        ("*a`b*`" * 30 + "\n" + "=" * 200 + "\n\n") * 800,
        ".. " + " " * 300_000 + "|" * 10,
        "= " * 150_000 + "x",
        "- " * 150_000,
        "\n" * 300_000,
    ],
)
def test_hostile_text_is_read_in_time(text):
    start = time.process_time()
    blocks(text)
    assert time.process_time() - start < 3
