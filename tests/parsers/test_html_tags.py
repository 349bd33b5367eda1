"""The compiled code that reads tags of HTML says what its twins in Python say."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from soups import soup

from transforms.parsers import html_rows, html_tags, html_text
from transforms.parsers.compiled import native

REQUIRED = os.environ.get("CHUNKMILL_REQUIRE_NATIVE") == "1"
pytestmark = pytest.mark.skipif(
    native is None and not REQUIRED, reason="nothing is compiled here (pip install -e . does it)"
)

NAMES = (
    *("table", "TD", "tr", "thead", "h1", "H6", "h7", "pre", "title", "caption", "br", "a", "o:p", "h12"),
    *("script", "STYLE", "template", "templates", "atemplate", "x" * 9),
    # What is one of them only if case is ignored in all of Unicode.
    *("\u017fcript", "scr\u0130pt", "t\u0131tle", "\u017ftyle", "\u212abd", "é", "日本"),
)
PIECES = (
    *("a", " ", ">", "<", "</", "/", "=", '"', "'", "\n", "/>", "< ", "<1", "</>", "<>"),
    *("<!--", "-->", "<!-->", "--", "-", "<!", "<?", "!", "?", "<!doctype html>", "&amp;", "&", "&lt;b&gt;"),
    *(' a="', "' b='", "=\u3000'", '= \x1c"', "= >", "\x85", "\u00a0", "\0", "é", "日本", "👩", "<日", "</é"),
    *(f"<{name}" for name in NAMES),
    *(f"</{name}" for name in NAMES),
    *(f"<{name}>" for name in NAMES),
    *(f"</{name}>" for name in NAMES),
)
TEXTS = st.one_of(soup(PIECES, max_size=12), soup(PIECES, min_size=20, max_size=90), st.text(max_size=60))
# The part of a text that is read.
PARTS = st.tuples(st.floats(0, 1), st.floats(0, 1)) | st.just((0, 1))


TABLE_PIECES = (
    *(
        "a",
        " ",
        ">",
        "<table>",
        "</table>",
        "<tr>",
        "</tr>",
        "<td>",
        "</td>",
        "<th>",
        "</th>",
        "<thead>",
        "</thead>",
    ),
    *(
        "<tbody>",
        "<caption>",
        "</caption>",
        "<br>",
        "<script>",
        "<td colspan=2>",
        '<th\nROWSPAN = "3">',
        "<td rowspan=0>",
    ),
    *(
        "<td ",
        "col\u017fpan=2",
        " colspan='9999'",
        " rowspan=x",
        " color=red",
        " class=c",
        "<tr class=c>",
        "日",
    ),
)


def told_of(rows, captions):
    """All facts of rows and captions."""
    told = [(row.group, row.in_head, row.end, row.is_spanned, row.is_header) for row in rows]
    cells = [captions, *(row.cells for row in rows)]
    return told, [[(c.is_name, c.start, c.end, c.columns, c.rows) for c in held] for held in cells]


def facts(tags):
    return [(tag.start, tag.end, tag.name, tag.is_end) for tag in tags]


@given(TEXTS, PARTS)
@example("<style></é</style >", (0, 1))
@example("<style\x85><h1></style>", (0, 1))
def test_tags_of_html_are_the_same(text, part):
    place = sorted(round(share * len(text)) for share in part)
    for names in ((), html_rows.STRUCTURE, html_tags.BLOCKS, ("br", "a")):
        ours, plain = (facts(module.tags(text, *place, names)) for module in (native, html_tags))
        assert ours == plain
    for names in (html_rows.STRUCTURE, html_tags.BLOCKS, ("kbd",)):
        ours, plain = (facts(module.tags_at_a_guess(text, *place, names)) for module in (native, html_tags))
        assert ours == plain


@given(TEXTS)
def test_blocks_of_html_are_the_same(text):
    assert native.html_blocks(text) == html_text.html_blocks(text)


@given(soup(TABLE_PIECES, max_size=60) | TEXTS, PARTS)
def test_rows_of_html_tables_are_the_same(text, part):
    place = sorted(round(share * len(text)) for share in part)
    ours, plain = (told_of(*module.html_rows(text, *place)) for module in (native, html_rows))
    assert ours == plain


@given(TEXTS, PARTS)
def test_what_is_shown_of_html_is_the_same(text, part):
    place = sorted(round(share * len(text)) for share in part)
    for apart in (frozenset(), html_tags.LINES_OF_THEIR_OWN):
        assert native.shown(text, *place, apart) == html_tags.shown(text, *place, apart)


@pytest.mark.parametrize("names", [("section9x",), ("é",), ("TD",), ("",), tuple(f"h{n}" for n in range(30))])
def test_names_that_cannot_be_looked_for_are_refused(names):
    with pytest.raises(ValueError, match="name"):
        native.tags("<p>", 0, 3, names)


@pytest.mark.parametrize(
    "piece",
    [
        *("<", "</", "<a", "<a ", "<table ", "<table>", "<table a=", '<td a="', "<!", "<!--", "<!-- --", "</script"),
        *("<script>", "<script></script", "<script></script>", "='", "< table", "<a <h1>", "<h1>", "&", "<p>&lt;"),
    ],
)  # fmt: skip
def test_hostile_html_is_read_in_linear_time(piece):
    """Millions of characters, of which some could be looked at again for each tag, take no longer than a test may."""
    for lead in ("", "日"):
        text = lead + piece * 200_000
        for found in (native.tags, native.tags_at_a_guess):
            assert all(tag.start < tag.end for tag in found(text, 0, len(text), html_tags.BLOCKS))
        assert len(native.shown(text, 0, len(text))) <= len(text)
        assert len(native.html_blocks(text)[0]) <= len(text)
        assert len(native.html_rows(text, 0, len(text))[0]) <= len(text)
