"""The text of a document, measured: token counts, clean edges, the columns of its blocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from transforms.chunkers.edges import Edges
from transforms.chunkers.rulers import Ruler
from transforms.parsers.tables import TableSpans
from transforms.records import Block, Document, Span
from transforms.tokenizers.base import Tokenizer

# More than any budget: what is never to stand in one chunk.
_ENDLESS = 1 << 62


class MeasuredText:
    """What every chunk of a document asks for.

    Args:
        document: The document.
        tokenizer: What counts.
        edges_of: Finds the clean edges of slices of a text.
        ruler: Makes the ruler of a text.
        regions_between_gaps: Divides a text where no chunk reaches across.

    Attributes:
        title: Title of the document, or what a strategy takes for it where there is none.
        notes: What was done to the document besides measuring it, by name, with how often.
        removed: What a setting leaves out of the chunks, ascending.
        bound: What is to stay in one chunk while it fits, besides code and tables; ascending.
        start: Start of the text, but for the white space around it, which no chunk holds.
        end: End of it.
        regions: The parts of the text between its hard gaps; no chunk reaches across one.
        room: What of a budget is left for a chunk that starts somewhere; less than all if its context shares it.
        limit: Furthest end of a chunk that starts somewhere, whatever its budget, while a strategy sets one.
        path_starts: Where the paths in force begin.
        paths: These paths.
        block_kinds: Kind of each block.
        block_starts: Start of each.
        block_ends: End of each.
    """

    def __init__(
        self,
        document: Document,
        tokenizer: Tokenizer,
        edges_of: Callable[[str], Edges],
        ruler: Callable[[str, Tokenizer, list[Span]], Ruler],
        regions_between_gaps: Callable[[str, int, int], list[Span]],
    ) -> None:
        self.document = document
        self.text = text = document.text
        self.title = document.title
        self.notes: dict[str, int] = {}
        self.removed: list[Span] = []
        self.bound: Sequence[Span] = ()
        self._prepared: dict[int, Any] = {}
        self._tables: dict[int, TableSpans | None] = {}
        self.blocks: Sequence[Block] = ()
        self.block_kinds: Sequence[str] = ()
        self.block_starts: Sequence[int] = ()
        self.block_ends: Sequence[int] = ()
        self.has_tables = False
        self._headings: Sequence[Block] = ()
        self._heading_starts: Sequence[int] = ()
        self.path_starts: list[int] = []
        self.paths: list[tuple[str, ...]] = []
        self.edges = edges = edges_of(text)
        # Last position up to another one, and first from it on, that divides no grapheme cluster.
        self.edge_before, self.edge_after = edges.before, edges.after
        # Where a chunk begins and ends that may hold a certain slice: without the white space at its edges.
        self.begin, self.finish = edges.begin, edges.finish
        self.start, self.end = self.trim(0, len(text))
        self.regions = regions_between_gaps(text, self.start, self.end)
        self.ruler = ruler(text, tokenizer, self.regions)
        # Tokens of a slice, from start to end; more than any budget if it spans a hard gap.
        self.count = self.ruler.count
        if len(self.regions) > 1:
            self.regions = [(self.edge_before(start), self.edge_before(end)) for start, end in self.regions]
            self.count = self._count_in_regions
        self.room: Callable[[int, int], int] = all_of_it
        self.limit: Callable[[int], int] | None = None

    def take_blocks(self, blocks: Sequence[Block]) -> None:
        """Let the document have these blocks, before anything is cut.

        Args:
            blocks: The blocks, in order.
        """
        self._tables = {}
        self.blocks = [block for raw in blocks if (block := self._usable(raw))]
        self.block_kinds = [block.kind for block in self.blocks]
        self.block_starts = [block.start for block in self.blocks]
        self.block_ends = [block.end for block in self.blocks]
        self.has_tables = "table" in self.block_kinds
        self._headings = [block for block in self.blocks if block.kind == "heading"]
        self._heading_starts = [heading.start for heading in self._headings]
        self.path_starts, self.paths = list(self._heading_starts), []
        levels: list[int] = []
        titles: list[str] = []
        for heading in self._headings:
            level = heading.level or 1
            while levels and levels[-1] >= level:
                levels.pop()
                titles.pop()
            levels.append(level)
            titles.append(heading.title or "")
            self.paths.append(tuple(titles))

    def _usable(self, block: Block) -> Block | None:
        """A block as a strategy may use it, which the document knows; None if nothing is left of it."""
        raise NotImplementedError

    def kind_of(self, start: int, end: int) -> str | None:
        """Kind of the block that holds all of a slice, if one does."""
        place = bisect_right(self.block_starts, start) - 1
        return self.block_kinds[place] if place >= 0 and end <= self.block_ends[place] else None

    def path_at(self, position: int) -> tuple[str, ...]:
        """The path in force at a position."""
        place = bisect_right(self.path_starts, position) - 1
        return self.paths[place] if place >= 0 else ()

    def reach(self, start: int, budget: int) -> int:
        """About the furthest end of a chunk from `start` within `budget` tokens, rather too far than too near."""
        furthest = self.ruler.reach(start, budget)
        return furthest if self.limit is None else min(furthest, self.limit(start))

    def trim(self, start: int, end: int) -> tuple[int, int]:
        """A slice with clean edges; empty if it is blank."""
        start = self.begin(start, end)
        return start, self.finish(end, start)

    def _count_in_regions(self, start: int, end: int) -> int:
        inside = any(low <= start and end <= high for low, high in self.regions)
        return self.ruler.count(start, end) if inside else _ENDLESS


def all_of_it(start: int, size: int) -> int:
    """All of a budget, wherever the chunk starts."""
    return size
