"""A document as every strategy sees it: slices with exact token counts and with clean edges."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from transforms.chunkers import compiled
from transforms.chunkers.edges import edges_of
from transforms.chunkers.rulers import black, regions_between_gaps, ruler
from transforms.parsers.lines import line_feeds
from transforms.parsers.tables import TableSpans, read_spans
from transforms.records import Block, Document, Span
from transforms.tokenizers.base import Tokenizer

if TYPE_CHECKING or not compiled.native:
    from transforms.chunkers.measured_text import MeasuredText
else:
    from transforms.chunkers.native import MeasuredText

T = TypeVar("T")

_LINE_BREAK = re.compile(r"\r\n|\n|\r")


class Measured(MeasuredText):
    """The text of a document, measured once.

    Token counts, white space at the edges and grapheme clusters are decided here and nowhere else.

    Args:
        document: The document.
        blocks: Its blocks, in order.
        tokenizer: What counts.
    """

    def __init__(self, document: Document, blocks: Sequence[Block], tokenizer: Tokenizer) -> None:
        super().__init__(document, tokenizer, edges_of, ruler, regions_between_gaps)
        if blocks:
            self.take_blocks(blocks)

    def _usable(self, block: Block) -> Block | None:
        """A block whose edges divide no grapheme cluster, a heading with a title; None if nothing is left of it."""
        start, end = self.edge_before(block.start), self.edge_before(block.end)
        if (start, end) != (block.start, block.end):
            if start == end:
                return None
            block = replace(block, start=start, end=end)
        return self._as_heading(block) if block.kind == "heading" else block

    def _as_heading(self, block: Block) -> Block:
        """A heading with a title and a level of 1 to 6; without any title it is none, and changes nothing."""
        title = block.title or self.text[block.start : block.end].strip().strip("#").strip()
        if not title.strip():
            return replace(block, kind="other", level=None, title=None)
        level = min(max(1 if block.level is None else block.level, 1), 6)
        if level != block.level:
            self.note("clamped heading level")
        elif title == block.title:
            return block
        return replace(block, title=title, level=level)

    def headings(self, start: int, end: int) -> Sequence[Block]:
        """The headings that begin in [start, end)."""
        starts = self._heading_starts
        return self._headings[bisect_left(starts, start) : bisect_left(starts, end)]

    def enter(self, start: int, path: tuple[str, ...]) -> None:
        """Set the path in force from `start` on: the titles of what a chunk stands in, outermost first.

        Args:
            start: Position, in code points; not before that of the path entered last.
            path: The titles.
        """
        if self.path_starts and self.path_starts[-1] == start:
            self.paths[-1] = path
        else:
            self.path_starts.append(start)
            self.paths.append(path)

    def forget_paths(self) -> None:
        """Let a strategy enter paths of its own instead of those of the headings."""
        self.path_starts, self.paths = [], []

    def tables(self) -> Iterator[TableSpans]:
        """The tables whose rows can be told, in order."""
        for place, block in enumerate(self.blocks):
            if block.kind == "table" and (table := self._table(place)):
                yield table

    def rows_of(self, block: Block) -> list[Span]:
        """The header and the rows of a table, by their spans; none of any other block.

        Args:
            block: One of `blocks`.
        """
        if block.kind != "table":
            return []
        table = self._table(bisect_right(self.block_starts, block.start) - 1)
        return table.header_and_rows if table else []

    def table_header_at(self, position: int) -> str | None:
        """The header of the table in whose rows a position lies; None if there is none."""
        place = bisect_right(self.block_starts, position) - 1
        block = self.blocks[place] if place >= 0 else None
        # What begins where the table does has its header in its text.
        if block is None or block.kind != "table" or not block.start < position < block.end:
            return None
        table = self._table(place)
        if table is None or table.header is None or position < table.header[1]:
            return None
        return self.text[slice(*table.header)].strip()

    def _table(self, place: int) -> TableSpans | None:
        if place not in self._tables:
            block = self.blocks[place]
            self._tables[place] = read_spans(self.text, block.start, block.end, self.document.media_type)
        return self._tables[place]

    def prepared(self, owner: object, make: Callable[[Measured], T]) -> T:
        """What `owner` makes once for this document, however many parts of it are cut."""
        if id(owner) not in self._prepared:
            self._prepared[id(owner)] = make(self)
        made: T = self._prepared[id(owner)]
        return made

    def let_go(self) -> None:
        """Forget what was prepared: it knows this document too, and in a ring both would outlive their use."""
        self._prepared.clear()

    def is_all(self, start: int, end: int) -> bool:
        """Whether [start, end) is the whole document."""
        return start <= self.start and end >= self.end

    @contextmanager
    def at_most_lines(self, lines: int) -> Iterator[None]:
        """Let no chunk that is cut meanwhile have more lines than this.

        Args:
            lines: The limit; 0 for none.
        """
        outer = self.limit
        if lines:
            ends = self._line_ends

            def within_lines(start: int) -> int:
                last = bisect_left(ends, start) + lines - 1
                furthest = ends[last] if last < len(ends) else len(self.text)
                return furthest if outer is None else min(furthest, outer(start))

            self.limit = within_lines
        try:
            yield
        finally:
            self.limit = outer

    def line_start(self, position: int, lines_before: int = 0) -> int:
        """Where a line starts.

        Args:
            position: A position in the line, or in one after it.
            lines_before: How many lines before that one.
        """
        end = bisect_left(self._line_ends, position) - 1 - lines_before
        if end < 0:
            return 0
        start = self._line_ends[end]
        return start + (2 if self.text.startswith("\r\n", start) else 1)

    @cached_property
    def _line_ends(self) -> list[int]:
        """Where the lines end, before what ends them; but for the last one."""
        if "\r" in self.text:
            return [found.start() for found in _LINE_BREAK.finditer(self.text)]
        ends: list[int] = line_feeds(self.text).tolist()
        return ends

    def note(self, what: str, times: int = 1) -> None:
        """Record something that was done to the document."""
        self.notes[what] = self.notes.get(what, 0) + times

    def removed_black(self) -> int:
        """Characters, white space apart, that a setting leaves out of the chunks."""
        return sum(black(self.text[start:end]) for start, end in self.removed)
