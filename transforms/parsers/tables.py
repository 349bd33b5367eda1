"""Tables: the rows and cells of Markdown, HTML, delimited and drawn text, with their place in the source."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat, takewhile, zip_longest
from typing import TYPE_CHECKING

from transforms.parsers.compiled import native
from transforms.parsers.drawn_tables import DrawnTable, read_drawn_table
from transforms.parsers.html_tags import LINES_OF_THEIR_OWN, one_line
from transforms.records import Span

if TYPE_CHECKING or not native:
    from transforms.parsers.html_rows import HtmlCell, HtmlRow, html_rows
    from transforms.parsers.html_tags import shown
else:
    from transforms.parsers.native import HtmlCell, HtmlRow, html_rows, shown

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NEWLINE = "\r\n"
_BOM = "\ufeff"
_TO_QUOTE = re.compile(r'[,"\r\n\ufeff]')
_QUOTED = re.compile('"[^"]*"?')
_DELIMITERS = {"text/csv": None, "text/tab-separated-values": "\t"}
_LIKELY_DELIMITERS = ",;\t|"
# The csv module refuses longer cells than its limit, and has one limit for the whole process.
_LONGEST_CELL = 2**31 - 1

_PIPE = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r":?-+:?")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Args:
        start: First character, in code points.
        end: End of the half-open span.
        cells: Values of its cells, as many as it has.
    """

    start: int
    end: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table, read from a text.

    The spans of header and rows hold all of its source but white space: what stands between two rows of HTML
    belongs to the second, what stands after the last to the last.

    Args:
        header: Names of the columns; empty if the table does not say.
        header_span: Where it says so, with the line of dashes in Markdown; None if it does not.
        rows: The rows below the header, in order.
        caption: What an HTML table says of itself.
    """

    header: tuple[str, ...]
    header_span: Span | None
    rows: Sequence[Row]
    caption: str = ""

    @property
    def spans(self) -> TableSpans:
        """Where its header and rows are."""
        return TableSpans(self.header_span, [(row.start, row.end) for row in self.rows])


@dataclass(frozen=True, slots=True)
class TableSpans:
    """Where the header and the rows of a table are, as `Table` tells with their values.

    Args:
        header: Where it names its columns; None if it does not.
        rows: Where the rows below the header are, in order.
    """

    header: Span | None
    rows: list[Span]

    @property
    def header_and_rows(self) -> list[Span]:
        """The header, if there is one, and the rows."""
        return [self.header, *self.rows] if self.header else self.rows


def read_table(text: str, start: int, end: int, media_type: str | None = None) -> Table | None:
    """The table in [start, end) of a text; None if there is none.

    `text/csv` is delimited by that one of comma, semicolon, tab and bar that is most frequent in the first line
    outside quotes, by commas if none is; `text/tab-separated-values` by tabs. The first record is the header;
    blank lines are no rows; a quote that is never closed holds all that follows. Any other text is read as a
    Markdown table if it has a row of dashes under a row of as many names, else as HTML. Without a header are HTML
    tables that have neither `thead` nor a first row of `th` only.

    `text/x-rst` is a grid table or a simple table, and none if its cells span columns or rows.

    Values are what the source says: white space around the cells of Markdown and HTML is not part of them, `\\|`
    is a bar, entities stand for their characters, and each cell of HTML is repeated over the columns and rows that
    it spans (while all of that is no more than the characters of the table). A nested table is text of its cell.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
        start: First character, in code points.
        end: End of what is read.
        media_type: Media type of the document.
    """
    found = _found(text, start, end, media_type)
    return found.table() if isinstance(found, _HtmlTable | _DrawnTable) else found


def read_spans(text: str, start: int, end: int, media_type: str | None = None) -> TableSpans | None:
    """Where the table that `read_table` gives has its header and rows, without the values of HTML and drawn tables.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
        start: First character, in code points.
        end: End of what is read.
        media_type: Media type of the document.
    """
    found = _found(text, start, end, media_type)
    return found.spans if found else None


def _found(
    text: str, start: int, end: int, media_type: str | None
) -> Table | _HtmlTable | _DrawnTable | None:
    if media_type in _DELIMITERS:
        return _read_delimited(text, start, end, _DELIMITERS[media_type])
    if media_type == "text/html":
        return _read_html(text, start, end)
    if media_type == "text/x-rst":
        drawn = read_drawn_table(text, start, end)
        return _DrawnTable(drawn) if drawn else None
    return _read_markdown(text, start, end) or _read_html(text, start, end)


def write_table(rows: Iterable[Sequence[object]]) -> tuple[str, Table | None]:
    """A table given as rows of cells, the names of its columns first: as comma-separated text, and read from that."""
    text = "".join((",".join(map(_written, row)) or '""') + "\n" for row in rows)
    return text, _read_delimited(text, 0, len(text), ",")


def row_sentences(table: Table, index: int) -> str:
    """A row in sentences, one a line: `Row {index}, {column}: {value}`.

    Rows and columns are counted from 0. A column without a name is `column_{n}`. A cell that is missing is written
    as an empty one is.

    Args:
        table: The table.
        index: Which of its rows.
    """
    header, cells = table.header, table.rows[index].cells
    sentences = []
    for column in range(max(len(header), len(cells))):
        name = (header[column] if column < len(header) else "") or f"column_{column}"
        value = cells[column] if column < len(cells) else ""
        sentences.append(f"Row {index}, {name}: {value}" if value else f"Row {index}, {name}:")
    return "\n".join(sentences)


def _written(cell: object) -> str:
    value = "" if cell is None else str(cell)
    return '"' + value.replace('"', '""') + '"' if _TO_QUOTE.search(value) or value.isspace() else value


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    """Span of each line that is not blank, without its end."""
    for found in _LINE.finditer(text, start, end):
        line = found[0].rstrip(_NEWLINE)
        if line and not line.isspace():
            yield found.start(), found.start() + len(line)


def _read_delimited(text: str, start: int, end: int, delimiter: str | None) -> Table | None:
    lines = [found.span() for found in _LINE.finditer(text, start, end)]
    # The csv module tells values but no offsets; it does tell how many lines it has taken.
    source = (
        text[low:high].removeprefix(_BOM if low == start else "").replace("\0", "\ufffd")
        for low, high in lines
    )
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(source, delimiter=delimiter or _likely_delimiter(text, start, end))
    rows: list[Row] = []
    taken = 0
    for cells in reader:
        low, high = lines[taken][0], lines[reader.line_num - 1][1]
        taken = reader.line_num
        record = text[low:high].rstrip(_NEWLINE)
        if record and not record.isspace():
            rows.append(Row(low, low + len(record), tuple(cells)))
    if not rows:
        return None
    names, *others = rows
    return Table(names.cells, (names.start, names.end), others)


def _likely_delimiter(text: str, start: int, end: int) -> str:
    low, high = next(_lines(text, start, end), (start, start))
    unquoted = _QUOTED.sub("", text[low:high])
    return max(_LIKELY_DELIMITERS, key=unquoted.count)


def _read_markdown(text: str, start: int, end: int) -> Table | None:
    before: Span | None = None
    lines = _lines(text, start, end)
    for low, high in lines:
        dashes = _pipe_cells(text[low:high])
        if before and all(map(_DASHES.fullmatch, dashes)):
            names = _pipe_cells(text[slice(*before)])
            if len(names) == len(dashes):
                rows = [Row(*line, _pipe_cells(text[slice(*line)])) for line in lines]
                return Table(names, (start, high), rows)
        before = low, high
    return None


@dataclass(frozen=True, slots=True)
class _DrawnTable:
    """A drawn table before its values are read."""

    drawn: DrawnTable

    @property
    def spans(self) -> TableSpans:
        rows, headers = self.drawn.rows, self.drawn.headers
        header = (rows[0][0], rows[headers - 1][1]) if headers else None
        return TableSpans(header, rows[headers:])

    def table(self) -> Table:
        """The table with its values."""
        spans, cells, headers = self.spans, self.drawn.cells(), self.drawn.headers
        names = tuple(" ".join(filter(None, column)) for column in zip(*cells[:headers], strict=True))
        rows = [Row(*span, values) for span, values in zip(spans.rows, cells[headers:], strict=True)]
        return Table(names, spans.header, rows)


def _pipe_cells(line: str) -> tuple[str, ...]:
    cells = _PIPE.split(line.strip())
    if not cells[0]:
        cells.pop(0)
    if cells and not cells[-1]:
        cells.pop()
    return tuple(cell.strip().replace("\\|", "|") for cell in cells)


# The cells of a row, each as often as it spans columns; None where there is none.
_HtmlCells = Sequence[HtmlCell | None]


@dataclass(frozen=True, slots=True)
class _HtmlTable:
    """An HTML table before its values are read, which few ask for: its rows, and how many of them are the header."""

    text: str
    spans: TableSpans
    rows: list[_HtmlCells]
    headers: int
    captions: list[HtmlCell]

    def table(self) -> Table:
        """The table with its values."""
        values = {cell: _value(self.text, [cell] if cell else []) for cell in set(chain(*self.rows))}
        rows = [tuple(map(values.__getitem__, cells)) for cells in self.rows]
        columns = zip_longest(*rows[: self.headers], fillvalue="")
        names = tuple(" ".join(filter(None, dict.fromkeys(column))) for column in columns)
        below = [Row(*span, cells) for span, cells in zip(self.spans.rows, rows[self.headers :], strict=True)]
        return Table(names, self.spans.header, below, _value(self.text, self.captions))


def _read_html(text: str, start: int, end: int) -> _HtmlTable | None:
    rows, captions = html_rows(text, start, end)
    cells = _expanded(rows, end - start)
    kept = [(row, own) for row, own in zip(rows, cells, strict=True) if own]
    if not kept:
        return None
    headers = sum(1 for _ in takewhile(lambda each: each[0].is_header, kept))
    if headers == len(kept):
        headers = 1  # the rest is more than names
    ends = [row.end for row, _ in kept[:-1]]
    spans = list(map(_trimmed, repeat(text), [start, *ends], [*ends, end]))
    header = (spans[0][0], spans[headers - 1][1]) if headers else None
    return _HtmlTable(text, TableSpans(header, spans[headers:]), [own for _, own in kept], headers, captions)


def _value(text: str, cells: Iterable[HtmlCell]) -> str:
    """What a reader sees of a cell or of all captions, in one line."""
    return one_line("".join(shown(text, cell.start, cell.end, LINES_OF_THEIR_OWN) for cell in cells))


def _trimmed(text: str, start: int, end: int) -> Span:
    """A span without the white space around."""
    part = text[start:end].rstrip()
    return start + len(part) - len(part.lstrip()), start + len(part)


def _expanded(rows: Sequence[HtmlRow], most: int) -> list[_HtmlCells]:
    """The cells of each row, repeated over the columns and rows that they span; `most` times in all."""
    expanded: list[_HtmlCells] = []
    group = 0
    # What reaches down from the rows above, by column: the cell, and in how many more rows.
    reaching: dict[int, tuple[HtmlCell | None, int]] = {}
    for row in rows:
        if row.group != group or most <= 0:
            group, reaching = row.group, {}
        if not (row.is_spanned or reaching):
            expanded.append(row.cells)
            continue
        own: list[tuple[HtmlCell | None, int]] = []
        for cell in row.cells:
            columns = min(cell.columns, 1 + max(most, 0))
            own += [(cell, cell.rows)] * columns
            most -= columns - 1
        most += len(own)
        own.reverse()
        cells: list[HtmlCell | None] = []
        below: dict[int, tuple[HtmlCell | None, int]] = {}
        while own or reaching:
            column = len(cells)
            held, left = reaching.pop(column) if column in reaching else own.pop() if own else (None, 1)
            if left > 1:
                below[column] = held, left - 1
            cells.append(held)
        most -= len(cells)
        reaching = below
        expanded.append(cells)
    return expanded
