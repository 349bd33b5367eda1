"""Packing: pieces of a text joined to chunks that fill the budget and never pass it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from transforms.chunkers import boundaries, compiled
from transforms.chunkers.boundaries import KeepingWhole, PlaceLevel
from transforms.chunkers.filling import Ladder, LevelName
from transforms.chunkers.levels import Level
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.records import Span

if TYPE_CHECKING or not compiled.native:
    from transforms.chunkers.filling import Filler
else:
    from transforms.chunkers.native import Filler

PROSE: Ladder = ("blank line", "line", "sentence", "clause", "word", "link")
CODE: Ladder = ("blank line", "line", "word", "link")
TABLE: Ladder = ("row", "line", "cell", "sentence", "clause", "word", "link")
_BY_KIND: Mapping[str, Ladder] = {"code": CODE, "table": TABLE}

_LEVELS: Mapping[str, Callable[[str], Level]] = {
    "blank line": boundaries.blank_lines,
    "line": boundaries.lines,
    "sentence": boundaries.sentences,
    "clause": boundaries.clauses,
    "word": boundaries.words,
    "link": boundaries.links,
    "cell": boundaries.cells,
}
_NO_LEVELS: Mapping[str, Callable[[Measured], Level]] = {}
# Blocks that stay whole while they fit; of a table that does not, the rows do.
_KEPT_WHOLE = frozenset({"code", "table"})
_NOT_SHARED = _KEPT_WHOLE | {"heading"}
# Where an overlap starts best; the first of these that offers anything in reach is taken.
_OVERLAP_LEVELS = ("sentence", "line", "word")
# Boundaries tried at one level before the next finer one is; each costs a count.
_TRIES = 4


class Packer(Filler):
    """Packs one document, greedily and level by level.

    What lies between two boundaries of the coarsest level is a piece; neighbouring pieces are joined while the
    joined slice fits, and a piece that does not fit alone is packed by itself at the next finer level.

    Args:
        measured: The document.
        size: Budget of a chunk, in tokens.
        overlap: Most tokens a chunk shares with the one before.
        ladder: Levels at which to cut, coarse to fine.
        by_kind: Ladders for what lies in a block of a certain kind.
        levels: Levels that the ladder names besides the usual ones, and how to make them.
        overlap_of: The level whose whole pieces an overlap consists of, or there is none; without it an overlap
            starts on the best boundary at hand.
    """

    def __init__(
        self,
        measured: Measured,
        size: int,
        overlap: int = 0,
        ladder: Ladder = PROSE,
        by_kind: Mapping[str, Ladder] = _BY_KIND,
        levels: Mapping[str, Callable[[Measured], Level]] = _NO_LEVELS,
        overlap_of: LevelName | None = None,
    ) -> None:
        overlap_levels = (overlap_of,) if overlap_of else _OVERLAP_LEVELS
        kinds = _KEPT_WHOLE, _NOT_SHARED
        super().__init__(measured, size, overlap, ladder, by_kind, overlap_levels, overlap_of, *kinds, _TRIES)
        self._own_levels = levels
        if measured.bound:
            self._bind(measured.bound)

    def _bind(self, bound: Sequence[Span]) -> None:
        """Keep further spans whole if they fit, with all that is kept whole inside."""
        wholes = zip(self.whole_starts, self.whole_ends, strict=True)
        spans = sorted([*wholes, *(span for span in bound if self._fits(*span))], key=_outer_first)
        self.whole_starts, self.whole_ends = [], []
        for start, end in spans:
            if not self.whole_ends or end > self.whole_ends[-1]:
                self.whole_starts.append(start)
                self.whole_ends.append(end)

    def _make_level(self, name: LevelName) -> Level:
        """A level by its name, without the boundaries inside what is kept whole."""
        measured = self._measured
        level: Level
        if isinstance(name, tuple):
            level = boundaries.separators(measured.text, name)
        elif name in self._own_levels:
            level = self._own_levels[name](measured)
        elif name == "block":
            level = boundaries.block_edges(measured.blocks)
        elif name == "row":
            ends = [end for table in measured.tables() for _, end in table.header_and_rows]
            level = PlaceLevel(ends, ends)
        else:
            level = _LEVELS[name](measured.text)
        return KeepingWhole(level, self.whole_starts, self.whole_ends) if self.whole_starts else level


def _outer_first(span: Span) -> Span:
    return span[0], -span[1]


def whole(measured: Measured, start: int, end: int, size: int) -> Piece | None:
    """All of [start, end) as one chunk, if that fits.

    Args:
        measured: The document.
        start: First character, in code points.
        end: End of the slice.
        size: Budget, in tokens.
    """
    start = measured.begin(start, end)
    end = measured.finish(end, start)
    size = measured.room(start, size)
    if end > measured.reach(start, size):
        return None
    tokens = measured.count(start, end)
    return Piece(start, start, end, tokens) if tokens <= size else None


if compiled.native:
    whole = compiled.native.whole


def joined(
    measured: Measured, parts: Sequence[tuple[Span, object]], at: int, limit: int, size: int
) -> tuple[int, Piece | None]:
    """The most neighbouring parts that fit together.

    Args:
        measured: The document.
        parts: What follows each other, in order, each by its span first.
        at: The first of them.
        limit: End of those that may be joined with it.
        size: Budget, in tokens.

    Returns:
        The part after them, and the chunk they make; None where not even the first fits alone.
    """
    start = measured.begin(*parts[at][0])
    size = measured.room(start, size)
    reach = measured.reach(start, size)
    after = at + 1
    while after < limit and measured.finish(parts[after][0][1], start) <= reach:
        after += 1
    while True:
        end = measured.finish(parts[after - 1][0][1], start)
        if end <= reach:
            tokens = measured.count(start, end)
            if tokens <= size:
                return after, Piece(start, start, end, tokens)
        if after == at + 1:
            return after, None
        after -= 1


def join(measured: Measured, parts: Sequence[Span], size: int) -> Iterator[tuple[Span, Piece | None]]:
    """Neighbouring parts joined while they fit.

    Args:
        measured: The document.
        parts: Spans that follow each other, in order.
        size: Budget, in tokens.

    Yields:
        For each group its span and the chunk it makes; None where a single part does not fit.
    """
    spans = [(part, None) for part in parts]
    at = 0
    while at < len(parts):
        after, piece = joined(measured, spans, at, len(spans), size)
        yield (parts[at][0], parts[after - 1][1]), piece
        at = after
