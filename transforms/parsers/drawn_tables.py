"""Tables that are drawn with characters: the grid tables and simple tables of reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from transforms.records import Span

_LINE = re.compile(r"[^\r\n]+")
GRID_BORDER = re.compile(r"\+(?:[-=]+\+)+")
SIMPLE_BORDER = re.compile(r"=+(?: +=+)+")
# Borders that are none of a whole table, and lines under cells that span columns.
_LINES = re.compile(r"[-=]+(?: +[-=]+)*")
_TAB_SIZE = 8

# A row: its span and its cells.
DrawnRow = tuple[int, int, tuple[str, ...]]


def read_drawn_table(text: str, start: int, end: int) -> tuple[list[DrawnRow], int] | None:
    """The rows of the first drawn table in [start, end) of a text, and how many of them are its header.

    None if there is no table, or one in which cells span columns or rows. The spans of the rows hold all of it: what
    is before the table belongs to the first, and a border to the row above.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
        start: First character, in code points.
        end: End of what is read.
    """
    lines = [found.span() for found in _LINE.finditer(text, start, end) if not found[0].isspace()]
    for place, line in enumerate(lines):
        drawn = text[slice(*line)].strip()
        if GRID_BORDER.fullmatch(drawn):
            rows = _grid_rows(text, lines[place:])
        elif SIMPLE_BORDER.fullmatch(drawn):
            rows = _simple_rows(text, lines[place:])
        else:
            continue
        return _spanned(text, start, rows) if rows else None
    return None


# Lines of a row with its cells so far, and whether the border under it ends a header.
_Rows = list[tuple[list[Span], list[list[str]], bool]]


def _spanned(text: str, start: int, rows: _Rows) -> tuple[list[DrawnRow], int]:
    """The rows with all that is between them."""
    ends = [lines[-1][1] for lines, _, _ in rows]
    starts = [start, *(lines[0][0] for lines, _, _ in rows[1:])]
    starts[0] += len(text[start : ends[0]]) - len(text[start : ends[0]].lstrip("\r\n"))
    cells = [tuple(" ".join(filter(None, cell)) for cell in cells) for _, cells, _ in rows]
    headers = (number for number, (_, _, ends_header) in enumerate(rows, 1) if ends_header)
    return list(zip(starts, ends, cells, strict=True)), next(headers, 0)


def _grid_rows(text: str, lines: Sequence[Span]) -> _Rows | None:
    """Rows between borders of `-`, or of `=` below a header."""
    rows: _Rows = []
    border = _drawn(text, lines[0])
    edges = [at for at, character in enumerate(border) if character == "+"]
    held, cells = [lines[0]], _empty(edges)
    for line in lines[1:]:
        drawn = _drawn(text, line)
        held.append(line)
        if len(drawn) != len(border) or any(drawn[at] not in "+|" for at in edges):
            return None
        if GRID_BORDER.fullmatch(drawn.strip()):
            if drawn.replace("=", "-") != border.replace("=", "-"):
                return None
            rows.append((held, cells, "=" in drawn))
            held, cells = [], _empty(edges)
        elif "+-" in drawn or "-+" in drawn:
            return None
        else:
            for cell, (left, right) in zip(cells, pairwise(edges), strict=True):
                cell.append(drawn[left + 1 : right].strip())
    return None if held else rows


def _empty(edges: Sequence[int]) -> list[list[str]]:
    return [[] for _ in edges[1:]]


def _simple_rows(text: str, lines: Sequence[Span]) -> _Rows | None:
    """Rows of a line each, and of those below that leave the first column empty."""
    border = drawn = _drawn(text, lines[0])
    columns = [found.span() for found in re.finditer("=+", border)]
    rows: _Rows = [([lines[0]], [], False)]
    for line in lines[1:]:
        drawn = _drawn(text, line)
        held, cells, _ = rows[-1]
        if drawn == border and cells:
            rows[-1] = [*held, line], cells, line != lines[-1]
            continue
        values = list(_simple_cells(drawn, columns))
        if len(values) != len(columns) or _LINES.fullmatch(drawn.strip()):
            return None
        if not cells:
            rows[-1] = [*held, line], [[value] for value in values], False
        elif values[0]:
            rows.append(([line], [[value] for value in values], False))
        else:
            held.append(line)
            for cell, value in zip(cells, values, strict=True):
                cell.append(value)
    return rows if drawn == border and rows[-1][1] else None


def _simple_cells(drawn: str, columns: Sequence[Span]) -> Iterator[str]:
    """The cells of a line; too few if one of them runs over the gap to the next column."""
    for (left, right), (after, _) in pairwise(columns):
        if drawn[right:after].strip():
            return
        yield drawn[left:right].strip()
    yield drawn[columns[-1][0] :].strip()


def _drawn(text: str, line: Span) -> str:
    """A line, each character in its column."""
    return text[slice(*line)].expandtabs(_TAB_SIZE).rstrip()
