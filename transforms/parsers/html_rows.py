"""The rows of an HTML table with the places of their cells; what is not closed is mended as browsers do.

All of this has a compiled twin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from transforms.parsers.html_tags import Tag, tags

STRUCTURE = ("td", "th", "tr", "table", "thead", "tbody", "tfoot", "caption")
_CELLS = frozenset({"td", "th"})
_GROUPS = frozenset({"table", "thead", "tbody", "tfoot"})
_SPAN = re.compile(r"\s(col|row)span\s*=[\s\"']*([0-9]{1,5})", re.IGNORECASE)
_WIDEST, _TALLEST = 1000, 65_534


@dataclass(slots=True, eq=False)
class HtmlCell:
    """A cell, or a caption.

    Args:
        is_name: Whether it names its column or row.
        start: First character of its text, in code points.
        end: End of it, with the tag that ends the cell.
        columns: How many columns it spans.
        rows: How many rows.
    """

    is_name: bool
    start: int
    end: int = 0
    columns: int = 1
    rows: int = 1


@dataclass(slots=True)
class HtmlRow:
    """A row.

    Args:
        group: Number of the group of rows that it is in.
        in_head: Whether that is the head of the table.
        end: Where it ends.
        cells: Its cells, in order.
        is_spanned: Whether a cell of it spans columns or rows.
    """

    group: int
    in_head: bool
    end: int = 0
    cells: list[HtmlCell] = field(default_factory=list)
    is_spanned: bool = False

    @property
    def is_header(self) -> bool:
        """Whether all of it are names."""
        return bool(self.cells) and (self.in_head or all(cell.is_name for cell in self.cells))


def html_rows(text: str, start: int, end: int) -> tuple[list[HtmlRow], list[HtmlCell]]:
    """The rows and the captions of a table.

    Args:
        text: The text.
        start: First character of the table.
        end: End of it.
    """
    reader = _Reader(text)
    for tag in tags(text, start, end, STRUCTURE):
        reader.take(tag)
    reader.close(end)
    return reader.rows, reader.captions


def spanned(text: str, start: int, end: int) -> tuple[int, int] | None:
    """How many columns and rows a cell spans; None if its tag does not say.

    Args:
        text: The text.
        start: First character of the tag.
        end: End of it.
    """
    found = _SPAN.findall(text, start, end)
    if not found:
        return None
    columns = rows = 1
    for what, number in found:
        if what.lower() == "col":
            columns = min(max(1, int(number)), _WIDEST)
        else:
            rows = min(int(number) or _TALLEST, _TALLEST)
    return columns, rows


class _Reader:
    """The rows of a table, read tag by tag.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.rows: list[HtmlRow] = []
        self.captions: list[HtmlCell] = []
        self._row: HtmlRow | None = None
        # What the text at hand belongs to: a cell, a caption or nothing.
        self._cell: HtmlCell | None = None
        self._nested = self._group = 0
        self._in_head = False

    def take(self, tag: Tag) -> None:
        """The next tag."""
        name, is_end = tag.name, tag.is_end
        if name == "table" and self._row and self._cell and (self._nested or not is_end):
            self._nested += -1 if is_end else 1
        elif self._nested:
            return
        elif name in _CELLS:
            self._close_cell(tag.end)
            if not is_end:
                self._open_cell(tag)
        elif name == "tr":
            self._close_cell(tag.end)
            self._close_row(tag.end if is_end else tag.start)
            self._row = None if is_end else self._open_row()
        elif name in _GROUPS:
            self._close_cell(tag.end)
            self._close_row(tag.start)
            self._group += 1
            self._in_head = name == "thead" and not is_end
        elif name == "caption" and not self._row:
            self._close_cell(tag.end)
            if not is_end:
                self._cell = HtmlCell(is_name=True, start=tag.end)
                self.captions.append(self._cell)

    def close(self, end: int) -> None:
        """End what is open."""
        self._close_cell(end)
        self._close_row(end)

    def _open_row(self) -> HtmlRow:
        return HtmlRow(self._group, self._in_head)

    def _open_cell(self, tag: Tag) -> None:
        row = self._row = self._row or self._open_row()
        cell = self._cell = HtmlCell(tag.name == "th", tag.end)
        if spans := spanned(self._text, tag.start, tag.end):
            row.is_spanned = True
            cell.columns, cell.rows = spans
        row.cells.append(cell)

    def _close_cell(self, end: int) -> None:
        """End a cell or caption with the tag that ends it, which may part it from the next caption."""
        if self._cell:
            self._cell.end = end
        self._cell = None

    def _close_row(self, end: int) -> None:
        if self._row:
            self._row.end = end
            self.rows.append(self._row)
        self._row = None
