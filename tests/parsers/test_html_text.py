"""HTML gives its headings, tables and code as blocks that lie in the source as it is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soups import soup

from transforms.parsers.delimited import parse_delimited
from transforms.parsers.html_text import parse_html
from transforms.parsers.markdown import parse_markdown

PIECES = (
    *(
        "<table>",
        "</table>",
        "<tr>",
        "<td>",
        "</td>",
        "<h1>",
        "</h1>",
        "<H2 id=a>",
        "</h2>",
        "<pre>",
        "</pre>",
    ),
    *(
        "<title>",
        "</title>",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "a",
        " ",
        "\n",
        "\n\n",
        "&amp;",
        "<",
        ">",
        "# b\n",
    ),
)


def found(parse, text):
    return [(block.kind, text[block.start : block.end]) for block in parse(text)[0]]


def test_headings_have_the_level_of_their_element_and_a_title_without_markup():
    text = "<body>\n<h1 id='a'>Tides &amp;\n  <em>moorings</em></h1><p>x</p><H3>Springs</H3>"
    blocks = parse_html(text)[0]
    assert [(block.level, block.title) for block in blocks] == [(1, "Tides & moorings"), (3, "Springs")]
    assert text[blocks[1].start : blocks[1].end] == "<H3>Springs</H3>"


def test_no_word_of_a_title_runs_into_the_next_line():
    text = "<title>Port\n</title><h1>Tides<br>of <i>spr</i>ing</h1><h2><div>A</div><div>B</div></h2>"
    assert [block.title for block in parse_html(text)[0]] == ["Tides of spring", "A B"]


def test_a_table_is_a_block_with_the_tables_and_headings_inside_it():
    table = "<table><tr><td><h2>no</h2><table><tr><td>1</td></tr></table></td></tr></table>"
    assert found(parse_html, f"a{table} b") == [("table", table)]


def test_a_table_that_is_never_closed_holds_what_follows():
    assert found(parse_html, "a<table><tr><td>1\n<h1>b</h1> \n") == [
        ("table", "<table><tr><td>1\n<h1>b</h1>"),
    ]


def test_preformatted_text_is_code_and_holds_no_headings():
    assert found(parse_html, "<pre><h1>a</h1>\n\n  b</pre>c") == [("code", "<pre><h1>a</h1>\n\n  b</pre>")]


@pytest.mark.parametrize(
    "text",
    [
        "<!-- <h1>a</h1> -->",
        "<script>'<h1>a</h1>'</script>",
        "<p title='<h1>a</h1>'>b</p>",
        "<h1></h1>",
        "<h1>never closed",
        "<html1>a</html1>",
    ],
)
def test_what_is_no_heading_is_in_no_block(text):
    assert parse_html(text)[0] == ()


def test_the_title_of_the_page_is_its_front_matter():
    text = "<head><title>Port &amp; harbour</title></head><h1>Tides</h1><svg><title>no</title></svg>"
    assert parse_html(text)[1] == {"front_matter": {"title": "Port & harbour"}}


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("<table>\n<tr><td>1</td></tr>\n</table>\n\nAfter.\n", "<table>\n<tr><td>1</td></tr>\n</table>"),
        ("  <TABLE a=1>\n\n    <tr>\n\n- b\n\n</TABLE>\n\nAfter.\n", "  <TABLE a=1>\n\n    <tr>\n\n- b\n\n</TABLE>"),
        ("<table>\n<table>\n\n</table>\n\n</table>\n", "<table>\n<table>\n\n</table>\n\n</table>"),
        ("<table>\n\ntext\n\n# Tides\n\n</table>\n", "<table>"),
        ("<table>\n\nnever closed\n", "<table>"),
    ],
)  # fmt: skip
def test_markdown_has_html_tables_up_to_their_end_but_not_beyond_a_heading(text, table):
    assert [source for kind, source in found(parse_markdown, text) if kind == "table"] == [table]


@pytest.mark.parametrize(
    "text", ["</table>\n", "<tablet>\n", "a <table>\n", "```\n<table>\n```\n", "    <table>\n"]
)
def test_markdown_without_a_table_at_the_start_of_a_block_has_none(text):
    assert "table" not in dict(found(parse_markdown, text))


def test_delimited_text_is_one_table():
    assert found(parse_delimited, "\n a,b\n1,2\n\n") == [("table", "a,b\n1,2")]
    assert found(parse_delimited, " \n") == []


@pytest.mark.parametrize("parse", [parse_html, parse_markdown, parse_delimited])
@given(text=soup(PIECES) | st.text(max_size=40))
def test_blocks_of_any_text_are_in_order_and_not_blank(parse, text):
    blocks = parse(text)[0]
    assert all(text[block.start : block.end].strip() for block in blocks)
    assert all(before.end <= after.start for before, after in pairwise(blocks))


def test_a_tag_in_the_value_of_an_attribute_is_none():
    text = '<a title="see <table> and <h1> here" href="#">x</a><h2>Real</h2>'
    assert [(block.kind, block.title) for block in parse_html(text)[0]] == [("heading", "Real")]
