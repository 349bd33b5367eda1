"""Tables that are drawn with characters: the grid tables and simple tables of reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from transforms.records import Span

GRID_BORDER = re.compile(r"\+(?:[-=]+\+)+")
SIMPLE_BORDER = re.compile(r"=+(?: +=+)+")
# Borders that are none of a whole table, and lines under cells that span columns.
_LINES = re.compile(r"[-=]+(?: +[-=]+)*")
_TAB_SIZE = 8


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """A drawn table before its cells are read, which few ask for.

    Args:
        rows: Where its rows are. They hold all of it: what is before the table belongs to the first, and a border to
            the row above.
        headers: How many of them are its header.
        lines: The lines of each row, without borders, each character in its column.
        columns: Where on a line the columns of the table are.
    """

    rows: list[Span]
    headers: int
    lines: list[list[str]]
    columns: list[slice]

    def cells(self) -> list[tuple[str, ...]]:
        """The values of the cells, row by row."""
        return [
            tuple(" ".join(filter(None, (line[column].strip() for line in lines))) for column in self.columns)
            for lines in self.lines
        ]


def read_drawn_table(text: str, start: int, end: int) -> DrawnTable | None:
    """The first drawn table in [start, end) of a text; None without one, or if its cells span columns or rows.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
        start: First character, in code points.
        end: End of what is read.
    """
    lines: list[str] = []
    spans: list[Span] = []
    after = start
    for line in text[start:end].replace("\r", "\n").split("\n"):
        at, after = after, after + len(line) + 1
        if line and not line.isspace():
            lines.append(line)
            spans.append((at, after - 1))
    for place, line in enumerate(lines):
        border = line.strip()
        if GRID_BORDER.fullmatch(border):
            read = _grid_rows
        elif SIMPLE_BORDER.fullmatch(border):
            read = _simple_rows
        else:
            continue
        found = read([line.expandtabs(_TAB_SIZE).rstrip() for line in lines[place:]])
        if not found:
            return None
        rows, columns = found
        ends = [spans[place + row.last][1] for row in rows]
        before = text[start : ends[0]]
        starts = [start + len(before) - len(before.lstrip("\r\n"))]
        starts += [spans[place + row.first][0] for row in rows[1:]]
        headers = next((number for number, row in enumerate(rows, 1) if row.ends_header), 0)
        return DrawnTable(list(zip(starts, ends, strict=True)), headers, [row.lines for row in rows], columns)
    return None


@dataclass(slots=True)
class _Row:
    """A row: its first and its last line, its lines without borders, and whether the border under it ends a header."""

    first: int
    last: int = 0
    lines: list[str] = field(default_factory=list)
    ends_header: bool = False


def _grid_rows(lines: Sequence[str]) -> tuple[list[_Row], list[slice]] | None:
    """Rows between borders of `-`, or of `=` below a header, and the columns."""
    border = lines[0]
    edges = [at for at, character in enumerate(border) if character == "+"]
    rows = [_Row(0)]
    for number, line in enumerate(lines[1:], 1):
        if len(line) != len(border) or any(line[at] not in "+|" for at in edges):
            return None
        if GRID_BORDER.fullmatch(line.strip()):
            if line.replace("=", "-") != border.replace("=", "-"):
                return None
            rows[-1].last, rows[-1].ends_header = number, "=" in line
            rows.append(_Row(number + 1))
        elif "+-" in line or "-+" in line:
            return None
        else:
            rows[-1].lines.append(line)
    # After the last border nothing is left.
    if rows.pop().first < len(lines):
        return None
    return rows, [slice(left + 1, right) for left, right in pairwise(edges)]


def _simple_rows(lines: Sequence[str]) -> tuple[list[_Row], list[slice]] | None:
    """Rows of a line each, and of those below that leave the first column empty, and the columns."""
    border = line = lines[0]
    columns = [slice(*found.span()) for found in re.finditer("=+", border)]
    gaps = [slice(left.stop, right.start) for left, right in pairwise(columns)]
    columns[-1] = slice(columns[-1].start, None)
    rows: list[_Row] = []
    for number, line in enumerate(lines[1:], 1):
        if line == border and rows:
            rows[-1].last, rows[-1].ends_header = number, number + 1 < len(lines)
        elif any(line[gap].strip() for gap in gaps) or _LINES.fullmatch(line.strip()):
            return None
        elif line[columns[0]].strip() or not rows:
            rows.append(_Row(number, number, [line]))
        else:
            rows[-1].last = number
            rows[-1].lines.append(line)
    return (rows, columns) if line == border and rows else None
