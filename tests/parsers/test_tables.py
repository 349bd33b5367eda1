"""Tables become rows and cells with their place in the source, in Markdown, HTML, delimited and drawn text."""

from __future__ import annotations

import csv
import io
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from soups import soup

from transforms.parsers.tables import Row, Table, read_spans, read_table, row_sentences, write_table

CSV, TSV, MARKDOWN, HTML = "text/csv", "text/tab-separated-values", "text/markdown", "text/html"
PIECES = (
    'a b 007 é 港 | \\| || - |-|-| :-: , ; " "" \ufeff \0 &amp; &#160; & < > <table> </table> <tr> </tr> <td> </td> '
    "<th> </th> <thead> </thead> <tbody> <caption> </caption> <br> <!-- --> <! </ <script> </script> ' = <b"
).split(" ")
SOUP = st.lists(
    st.sampled_from(
        [*PIECES, " ", "\n", "\r\n", "\r", "\t", "<td rowspan=2>", '<td colspan="2">', "<td title='>'>"]
    ),
    max_size=30,
).map("".join)
CELLS = st.text(st.sampled_from("ab0 ,;|\t\"\n\r'é港"), max_size=5)


def read(text, media_type):
    """The table of a whole text, its laws checked."""
    table = read_table(text, 0, len(text), media_type)
    if table is None:
        return None
    spans = [table.header_span] if table.header_span else []
    spans += [(row.start, row.end) for row in table.rows]
    assert read_spans(text, 0, len(text), media_type).header_and_rows == spans
    assert bool(table.header_span) or not table.header
    held = 0
    for start, end in spans:
        assert held <= start < end <= len(text)
        assert not text[held:start].strip() or (media_type != CSV and not held)
        assert text[start:end].strip() == text[start:end].strip("\r\n").strip()
        held = end
    assert not text[held:].strip(), "text after the last row"
    return table


def cells(text, media_type):
    """Header and rows, as values."""
    table = read(text, media_type)
    return [table.header, *(row.cells for row in table.rows)]


def sources(text, media_type):
    """Header and rows, as they stand in the source."""
    table = read(text, media_type)
    head = [text[slice(*table.header_span)]] if table.header_span else []
    return head + [text[row.start : row.end] for row in table.rows]


class TestMarkdown:
    def test_a_table_has_names_and_rows(self):
        text = "| port | tide (m) |\n|---|---:|\n| p00 | 0.0 |\n| p01 | 007 |\n"
        assert cells(text, MARKDOWN) == [("port", "tide (m)"), ("p00", "0.0"), ("p01", "007")]
        assert sources(text, MARKDOWN) == [
            "| port | tide (m) |\n|---|---:|",
            "| p00 | 0.0 |",
            "| p01 | 007 |",
        ]

    def test_an_escaped_bar_makes_no_column(self):
        rows = [f"| p{number:02} | {number}.5 | berth {number} \\| side A |" for number in range(40)]
        text = "\n".join(["| port | tide (m) | note |", "|---|---:|---|", *rows])
        table = read(text, MARKDOWN)
        assert table.header == ("port", "tide (m)", "note")
        assert [row.cells for row in table.rows] == [
            (f"p{number:02}", f"{number}.5", f"berth {number} | side A") for number in range(40)
        ]
        assert sources(text, MARKDOWN)[1:] == rows

    @pytest.mark.parametrize("dashes", ["-|-", ":-|:-:", "|:---|---:|", " | -- | -- ", "| - | - |"])
    def test_bars_at_the_edges_may_be_missing(self, dashes):
        assert cells(f"a | b\n{dashes}\nc | d\n| e | f", MARKDOWN) == [("a", "b"), ("c", "d"), ("e", "f")]

    def test_rows_of_another_width_keep_their_cells(self):
        text = "| a | b |\r\n|-|-|\r\n| 1 |\r\n| 2 | | 3 | 4 |\r\n||\r\n"
        assert cells(text, MARKDOWN)[1:] == [("1",), ("2", "", "3", "4"), ("",)]

    def test_one_column_needs_its_bars_nowhere(self):
        assert cells("a\n-\nb", MARKDOWN) == [("a",), ("b",)]

    def test_dashes_of_another_width_make_no_table(self):
        assert read("a | b | c\n---|---\nd | e", MARKDOWN) is None
        assert read("|---|\n", MARKDOWN) is None

    def test_what_stands_before_the_names_belongs_to_the_header(self):
        assert sources("Tides\n\n| a |\n|---|\n| b |", MARKDOWN) == ["Tides\n\n| a |\n|---|", "| b |"]

    def test_a_table_within_a_text_is_read_where_it_stands(self):
        text = "# Tides\n\n| a |\n|---|\n| b |\n\nSpring."
        start, end = text.index("| a"), text.index("\n\nSpring")
        table = read_table(text, start, end, MARKDOWN)
        assert text[slice(*table.header_span)] == "| a |\n|---|"
        assert table.rows == [Row(end - 5, end, ("b",))]


class TestHtml:
    def test_a_table_has_names_and_rows(self):
        text = (
            "<table>\n<thead><tr><th>port</th><th>tide</th></tr></thead>\n"
            "<tbody><tr><td>p00</td><td>007</td></tr>\n<tr><td>p01</td><td></td></tr></tbody></table>\n"
        )
        assert cells(text, HTML) == [("port", "tide"), ("p00", "007"), ("p01", "")]
        assert sources(text, HTML) == [
            "<table>\n<thead><tr><th>port</th><th>tide</th></tr>",
            "</thead>\n<tbody><tr><td>p00</td><td>007</td></tr>",
            "<tr><td>p01</td><td></td></tr></tbody></table>",
        ]

    def test_a_first_row_of_th_is_the_header_and_th_beside_td_is_a_cell(self):
        text = "<TABLE><TR><TH>a<TH>b<TR><TH>c<TD>d</TABLE>"
        assert cells(text, HTML) == [("a", "b"), ("c", "d")]

    def test_a_table_that_names_no_columns_has_no_header(self):
        table = read("<table><tr><td>a<td>b</table>", HTML)
        assert (table.header, table.header_span) == ((), None)
        assert [row.cells for row in table.rows] == [("a", "b")]

    def test_of_a_table_of_names_only_the_first_row_is_the_header(self):
        assert cells("<tr><th>a<tr><th>b<tr><th>c", HTML) == [("a",), ("b",), ("c",)]

    def test_names_in_several_rows_are_joined(self):
        text = (
            "<table><thead><tr><th rowspan=2>port<th colspan='2'>2024<tr><th>Q1<th>Q2</thead>"
            "<tr><td>p00<td>1<td>2</table>"
        )
        assert cells(text, HTML) == [("port", "2024 Q1", "2024 Q2"), ("p00", "1", "2")]

    def test_cells_are_repeated_where_they_span(self):
        text = "<tr><td rowspan=2>a<td colspan=2>b<td rowspan=0>c<tr><td>d<td>e<tr><td>f</table>"
        assert cells(text, HTML)[1:] == [("a", "b", "b", "c"), ("a", "d", "e", "c"), ("f", "", "", "c")]

    def test_spans_end_with_their_group_of_rows(self):
        text = "<tbody><tr><td rowspan=9>a<td>b</tbody><tbody><tr><td>c<td>d"
        assert cells(text, HTML)[1:] == [("a", "b"), ("c", "d")]

    def test_a_nested_table_is_text_of_its_cell(self):
        text = "<table><tr><td>a<table><tr><td>x</td><td>y</td></tr></table> z</td><td>b</td></tr></table>"
        assert cells(text, HTML)[1:] == [("a x y z", "b")]

    def test_what_is_not_closed_ends_where_the_next_begins(self):
        text = "<table><tr><td>a<td>b\n<tr><td>c<td>d"
        assert cells(text, HTML)[1:] == [("a", "b"), ("c", "d")]
        assert sources(text, HTML) == ["<table><tr><td>a<td>b", "<tr><td>c<td>d"]

    def test_values_are_what_a_reader_sees(self):
        text = (
            "<tr><td> a &amp;\n b<br>c </td><td><!-- no --><b>d</b>e<script>x</script></td>"
            "<td title='>'>f</td><td>&lt;td&gt;</td><td>1 < 2 <3</td><td>&#" + "9" * 5000 + ";</td></tr>"
        )
        assert cells(text, HTML)[1] == ("a & b c", "de", "f", "<td>", "1 < 2 <3", "&#" + "9" * 5000 + ";")

    def test_an_apostrophe_in_a_value_without_quotes_hides_nothing(self):
        assert cells("<tr><td title=it's>a</td><td>b</td></tr>", HTML)[1:] == [("a", "b")]

    @pytest.mark.parametrize("count", [98, 99, 100, 5000])
    def test_a_tag_ends_after_all_of_its_values_however_many_they_are(self, count):
        tag = "<b" + " x='<td>'" * count
        assert cells(f"<tr><td>{tag}>a<td>{tag[:-1]}<td>b", HTML)[1:] == [("a", "")]

    def test_the_caption_is_kept_apart(self):
        assert (
            read("<table><caption>Tides <i>of</i> May</caption><tr><td>a</table>", HTML).caption
            == "Tides of May"
        )

    def test_a_table_in_a_markdown_text_may_be_html(self):
        assert cells("<table><tr><td>a</td></tr></table>", MARKDOWN)[1:] == [("a",)]

    @pytest.mark.parametrize(
        "text", ["", "text", "<p>a</p>", "<table></table>", "<!--<tr><td>-->", "<tr></tr>"]
    )
    def test_without_a_cell_there_is_no_table(self, text):
        assert read(text, HTML) is None

    @pytest.mark.parametrize(
        "piece",
        [
            *(
                "<table><tr><td>",
                "<td colspan=1000>",
                "<td rowspan=9999>",
                "<tr>",
                "</td>",
                "<!--",
                "<td a='",
                "< ",
            ),
            *('<td "', "<td a=", "&", "<script>", "<![CDATA[", "</", "<th rowspan=9><tr>", "<td a= \"'"),
        ],
    )
    @pytest.mark.parametrize(
        "lead", ["<tr><td colspan=1000 rowspan=60000>x", "<td>" * 2000 + "<td rowspan=60000>"]
    )
    def test_hostile_html_gives_no_more_values_than_characters(self, lead, piece):
        text = lead + piece * 20_000
        table = read(text, HTML)
        values = sum(len(row.cells) for row in table.rows) + len(table.header)
        assert 1 <= values <= 2 * len(text)


class TestDelimited:
    def test_quoted_cells_may_hold_anything(self):
        text = 'id,note\r\n1,"a, ""b""\r\nc"\r\n2,\r\n'
        assert cells(text, CSV) == [("id", "note"), ("1", 'a, "b"\r\nc'), ("2", "")]
        assert sources(text, CSV) == ["id,note", '1,"a, ""b""\r\nc"', "2,"]

    def test_values_keep_their_text(self):
        assert cells("a,b\n007, x \n1e5,NULL", CSV)[1:] == [("007", " x "), ("1e5", "NULL")]

    def test_blank_lines_are_no_rows_and_empty_cells_are(self):
        assert cells('\n\na,b\n\n  \n,\n""\n\n', CSV) == [("a", "b"), ("", ""), ("",)]

    def test_rows_of_another_width_keep_their_cells(self):
        assert cells("a,b\n1\n1,2,3", CSV)[1:] == [("1",), ("1", "2", "3")]

    @pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
    def test_the_delimiter_is_the_most_frequent_in_the_first_line(self, mark):
        text = mark.join(["port", '"a,;\t|,;\t|"', "b"]) + "\n" + mark.join(["1", "2,5;5", "3"])
        assert cells(text, CSV)[0] == ("port", "a,;\t|,;\t|", "b")

    def test_without_a_delimiter_there_is_one_column(self):
        assert cells("a\nb c\n", CSV) == [("a",), ("b c",)]

    def test_tabs_delimit_where_the_media_type_says_so(self):
        assert cells("a,b\tc\n1,2,3\t4", TSV) == [("a,b", "c"), ("1,2,3", "4")]

    def test_a_quote_inside_a_cell_is_a_character(self):
        assert cells('a,b\n5" pipe,3\n6,7', CSV)[1:] == [('5" pipe', "3"), ("6", "7")]

    def test_an_open_quote_loses_nothing(self):
        assert cells('a,b\n1,"open\n2,3\n', CSV)[1:] == [("1", "open\n2,3\n")]

    def test_a_byte_order_mark_is_no_part_of_a_name(self):
        text = '\ufeff"id",b\n1,2'
        assert cells(text, CSV)[0] == ("id", "b")
        assert sources(text, CSV)[0] == '\ufeff"id",b'

    def test_lines_end_where_lines_end_and_at_no_other_character(self):
        assert cells("a,b\rc,d\u2028e\x0bf\x85\r\ng,h", CSV) == [
            ("a", "b"),
            ("c", "d\u2028e\x0bf\x85"),
            ("g", "h"),
        ]

    def test_a_cell_may_be_long(self):
        assert cells("a,b\n1," + "x" * 500_000, CSV)[1] == ("1", "x" * 500_000)

    @given(
        st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=6), st.sampled_from(",;\t|")
    )
    def test_what_was_written_is_read(self, rows, mark):
        written = io.StringIO()
        csv.writer(written, delimiter=mark, quoting=csv.QUOTE_ALL).writerows([["n"] * 2, *rows])
        text = written.getvalue()
        assert cells(text, CSV)[1:] == list(map(tuple, rows))
        assert sources(text, CSV)[1:] == [
            mark.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows
        ]

    @given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=6))
    def test_a_list_of_rows_becomes_a_text_and_its_table(self, rows):
        text, table = write_table(rows)
        assert [table.header, *(row.cells for row in table.rows)] == list(map(tuple, rows))
        held = 0
        for start, end in [table.header_span, *((row.start, row.end) for row in table.rows)]:
            assert text[held:start] == ("\n" if held else "")
            held = end
        assert text[held:] == "\n"

    def test_a_cell_that_is_no_text_is_written_as_python_does(self):
        text, table = write_table([["a", "b"], [None, 7], [], ["", "x\ny"]])
        assert text == 'a,b\n,7\n""\n,"x\ny"\n'
        assert [row.cells for row in table.rows] == [("", "7"), ("",), ("", "x\ny")]


class TestSentences:
    TABLE = Table(("id", "", "note"), (0, 1), [Row(1, 2, ("007",)), Row(2, 3, ("", "x", "a\nb", "y", ""))])

    def test_nothing_is_dropped(self):
        assert row_sentences(self.TABLE, 0) == "Row 0, id: 007\nRow 0, column_1:\nRow 0, note:"
        assert row_sentences(self.TABLE, 1) == (
            "Row 1, id:\nRow 1, column_1: x\nRow 1, note: a\nb\nRow 1, column_3: y\nRow 1, column_4:"
        )

    def test_a_table_without_names_has_its_columns_counted(self):
        assert (
            row_sentences(Table((), None, [Row(0, 3, ("a", "b"))]), 0)
            == "Row 0, column_0: a\nRow 0, column_1: b"
        )


@given(SOUP, st.sampled_from([CSV, TSV, MARKDOWN, HTML, None]))
def test_any_text_is_read_with_spans_in_order_that_hold_all_of_it(text, media_type):
    read(text, media_type)


@pytest.mark.parametrize("media_type", [CSV, MARKDOWN, HTML])
def test_every_prefix_of_a_table_is_read(media_type):
    text = {
        CSV: 'a,"b ""x"""\r\n1,"2\r\n3"\r\n\r\n,"',
        MARKDOWN: "| a | b |\n|:-|-:|\n| 1 \\| | 2 |\n| 3\n",
        HTML: "<table><tr><th a='>'>x<th>y</tr><!-- c --><tr><td rowspan=2>1<td>&lt;2</tr><script>s</script></table>",
    }[media_type]
    for end in range(len(text) + 1):
        read(text[:end], media_type)


# ------------------------------------------------------------------------------------------------- reStructuredText

GRID = """\
+-------+---------+
| port  | tide    |
|       | in m    |
+=======+=========+
| north | 0.4     |
| quay  |         |
+-------+---------+
| south | 1.1     |
+-------+---------+"""
SIMPLE = """\
  =====  =======
  port   tide in
  ..     m
  =====  =======
  north  0.4
         or so

  south  1.1 and more than the column is wide
  =====  ======="""


def read_drawn(text):
    return read_table(text, 0, len(text), "text/x-rst")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_grid_has_the_rows_between_its_borders(newline):
    text = GRID.replace("\n", newline)
    table = read_drawn(text)
    assert table.header == ("port", "tide in m")
    assert [row.cells for row in table.rows] == [("north quay", "0.4"), ("south", "1.1")]
    assert text[slice(*table.header_span)].endswith("+=======+=========+")
    assert text[table.rows[0].start : table.rows[0].end].startswith("| north")
    assert table.rows[-1].end == len(text)


def test_a_simple_table_has_a_row_for_each_line_that_begins_in_its_first_column():
    table = read_drawn(SIMPLE)
    assert table.header == ("port ..", "tide in m")
    values = [("north", "0.4 or so"), ("south", "1.1 and more than the column is wide")]
    assert [row.cells for row in table.rows] == values
    assert SIMPLE[table.rows[0].start : table.rows[0].end].split() == ["north", "0.4", "or", "so"]


@pytest.mark.parametrize("text", ["+--+--+\n|a | b|\n+--+--+\n|c | d|\n+--+--+", "== ==\na  b\nc  d\n== =="])
def test_without_a_line_below_it_the_first_row_of_a_drawn_table_is_no_header(text):
    table = read_drawn(text)
    assert (table.header, table.header_span) == ((), None)
    assert [row.cells for row in table.rows] == [("a", "b"), ("c", "d")]
    assert (table.rows[0].start, table.rows[-1].end) == (0, len(text))


def test_tabs_reach_to_columns_of_eight():
    text = "=======\t====\na\tb\n=======\t===="
    assert [row.cells for row in read_drawn(text.replace("\t=", " =")).rows] == [("a", "b")]


def test_a_directive_before_a_drawn_table_belongs_to_its_first_row():
    text = ".. table:: Tides\n\n   == ==\n   a  b\n   == ==\n   c  d\n   == ==\n"
    table = read_drawn(text)
    assert (table.header, table.header_span[0]) == (("a", "b"), 0)


@pytest.mark.parametrize(
    "text",
    [
        "+--+--+\n|a    |\n+--+--+\n|c | d|\n+--+--+",
        "+--+--+\n|a |b |\n|  +--+\n|  |c |\n+--+--+",
        "+--+--+\n|a |b |\n+--+--+\n|c | d|",
        "== ==\naaaa b\n== ==",
        "== ==\na  b\n-----\nc  d\n== ==",
        "== ==\na  b\n== ====",
        "== ==\n== ==",
        ".. list-table::\n\n   * - a\n     - b\n",
        "| a | b |\n|---|---|\n| 1 | 2 |",
    ],
)
def test_a_drawn_table_with_cells_that_span_others_or_that_is_none_is_not_read(text):
    assert read_drawn(text) is None


@given(soup(("== ==", "+--+--+", "+==+==+", "a", "b ", " ", "   ", "|", "\n", "\n", "\t", "\r\n", "--", "=")))
@example(GRID)
@example(SIMPLE)
def test_header_and_rows_of_a_drawn_table_hold_all_of_it(text):
    table = read_drawn(text)
    if table is None:
        return
    spans = [*filter(None, [table.header_span]), *((row.start, row.end) for row in table.rows)]
    assert not text[: spans[0][0]].strip()
    assert not text[spans[-1][1] :].strip()
    for before, after in pairwise(spans):
        assert not text[before[1] : after[0]].strip()
