"""The strategy `table_rows`: the rows of tables in sentences, each value with the name of its column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from transforms.chunkers.base import Chunker, nested_chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.parsers.tables import Table, read_table, row_sentences
from transforms.records import Span


class TableRowsChunker(Chunker):
    """Each row of a table in lines `Row {i}, {column}: {value}`, as many rows in a chunk as fit.

    That is derived text: a chunk has the span of its rows in the source, the first of a table that of the header
    too. Rows are counted from 0, and no two chunks share one. A row that is too large in sentences is cut as it
    stands in the source, by the fallback, and so is all that is in no table and a table without rows.

    Args:
        rows_per_chunk: Rows of a chunk; fewer where these do not fit. None for as many as fit.
        fallback: What cuts all but tables: the name of a strategy, a table of its settings with its `name`, or a
            chunker. It takes size, overlap, tokenizer and engine from here unless it has its own.

    Raises:
        ConfigError: If a setting is unknown or refused, or the fallback's chunks could be larger.
    """

    name: ClassVar[str] = "table_rows"

    rows_per_chunk: int | None = Field(default=None, ge=1)
    fallback: Chunker = Field(default="recursive")  # type: ignore[assignment]  # the validator makes it one

    @field_validator("fallback", mode="before")
    @classmethod
    def _make_fallback(cls, value: object, info: ValidationInfo) -> object:
        return nested_chunker(value, info)

    def counting(self) -> dict[str, Any]:
        """Every setting as it counts: overlap is that of the chunker within, which has settings of its own."""
        return {**self.settings(), "chunk_overlap": 0}

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        for low, high in _tables(measured):
            if start <= low and high <= end:
                table = read_table(measured.text, low, high, measured.document.media_type)
                if table and table.rows:
                    yield from self._fall_back(measured, start, low)
                    yield from self._cut_table(measured, table, low, high)
                    start = high
        yield from self._fall_back(measured, start, end)

    def _cut_table(self, measured: Measured, table: Table, start: int, end: int) -> Iterator[Piece]:
        rows = _Rows(measured, self, table, start, end)
        for number in range(len(table.rows)):
            if not rows.take(number):
                yield from rows.give()
                if not rows.take(number):
                    measured.note("row too long in sentences")
                    yield from self._fall_back(measured, *rows.skip(number))
            if rows.taken == self.rows_per_chunk:
                yield from rows.give()
        yield from rows.give()

    def _fall_back(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        if measured.begin(start, end) < end:
            for piece in self.fallback.cut(measured, start, end):
                piece.fallback = self.fallback.name
                yield piece


class _Rows:
    """The rows of a table, gathered to chunks one by one.

    Args:
        measured: The document.
        chunker: Whose chunks they become.
        table: The table.
        start: First character of the table.
        end: End of it.
    """

    def __init__(self, measured: Measured, chunker: Chunker, table: Table, start: int, end: int) -> None:
        self._measured = measured
        self._size = chunker.chunk_size
        self._count = chunker.counter.count
        self._table = table
        self._end = end
        self._start = measured.begin(start, end)
        # The sentences of each row that waits, its end, and the tokens of all of them.
        self._texts: list[str] = []
        self._ends: list[int] = []
        self._tokens = 0
        # Each row names all columns: where the names alone are too many tokens, no row fits.
        names = len(table.header) if len(table.header) > self._size else self._count("\n".join(table.header))
        self._none_fits = names > self._size

    @property
    def taken(self) -> int:
        """How many rows wait for their chunk."""
        return len(self._texts)

    def take(self, number: int) -> bool:
        """Take a row to those that wait, if all of them fit together.

        Args:
            number: Which row.
        """
        room = self._measured.room(self._start, self._size)
        if self._none_fits or len(self._table.rows[number].cells) > room:
            return False
        text = row_sentences(self._table, number)
        if not number and self._table.caption:
            text = f"{self._table.caption}\n{text}"
        tokens = self._count(text)
        # A line break is a token at most, but for tokenizers that nobody has seen; `give` counts what is joined.
        if self._tokens + tokens > room:
            return False
        self._texts.append(text)
        self._ends.append(self._end_of(number))
        self._tokens += tokens + 1
        return True

    def give(self) -> Iterator[Piece]:
        """The chunk of the rows that wait, if there are any."""
        while self._texts:
            room, rows = self._measured.room(self._start, self._size), len(self._texts)
            # White space at the end of a value is dropped where it would end the chunk.
            text = "\n".join(self._texts).rstrip()
            tokens = self._count(text)
            while rows > 1 and tokens > room:
                rows -= 1
                text = "\n".join(self._texts[:rows]).rstrip()
                tokens = self._count(text)
            start, end = self._start, self._measured.finish(self._ends[rows - 1], self._start)
            yield Piece(start, start, end, tokens, kind="table", derived=text)
            self._go_on(end)
            del self._texts[:rows], self._ends[:rows]
        self._tokens = 0

    def skip(self, number: int) -> Span:
        """Pass over a row while none waits; gives its span."""
        span = self._start, self._end_of(number)
        self._go_on(span[1])
        return span

    def _end_of(self, number: int) -> int:
        """End of a row; that of the table for the last one."""
        rows = self._table.rows
        return self._end if number + 1 == len(rows) else self._measured.edge_after(rows[number].end)

    def _go_on(self, position: int) -> None:
        self._start = self._measured.begin(position, self._end)


def _tables(measured: Measured) -> Iterator[Span]:
    """Spans of the tables; rows that are blocks of their own make one while nothing stands between them."""
    held: Span | None = None
    for block in measured.blocks:
        if block.kind == "table_row" and held:
            held = held[0], block.end
            continue
        if held:
            yield held
            held = None
        if block.kind == "table_row":
            held = block.start, block.end
        elif block.kind == "table":
            yield block.start, block.end
    if held:
        yield held
