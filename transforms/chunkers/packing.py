"""Packing: pieces of a text joined to chunks that fill the budget and never pass it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from transforms.chunkers import boundaries
from transforms.chunkers.boundaries import KeepingWhole, Level, PlaceLevel
from transforms.chunkers.edges import white_end
from transforms.chunkers.measured import Measured
from transforms.records import Block, Span

# Levels of a ladder, coarse to fine: a name from `_LEVELS`, or the separators of one level. Graphemes come after all.
LevelName = str | tuple[str, ...]
Ladder = tuple[LevelName, ...]

PROSE: Ladder = ("blank line", "line", "sentence", "clause", "word", "link")
CODE: Ladder = ("blank line", "line", "word", "link")
TABLE: Ladder = ("row", "line", "cell", "sentence", "clause", "word", "link")

_LEVELS: Mapping[str, Callable[[str], Level]] = {
    "blank line": boundaries.blank_lines,
    "line": boundaries.lines,
    "sentence": boundaries.sentences,
    "clause": boundaries.clauses,
    "word": boundaries.words,
    "link": boundaries.links,
    "cell": boundaries.cells,
}
# Blocks that stay whole while they fit; of a table that does not, the rows do.
_KEPT_WHOLE = frozenset({"code", "table"})
_NO_OVERLAP_ACROSS = _KEPT_WHOLE | {"heading"}
# Where an overlap starts best; the first of these that offers anything in reach is taken.
_OVERLAP_LEVELS = ("sentence", "line", "word")
# Boundaries tried at one level before the next finer one is; each costs a count.
_TRIES = 4


@dataclass(slots=True)
class Piece:
    """A chunk to be: where it lies, and what its strategy knows of it.

    Args:
        start: First character, overlap included.
        new: First character that the chunk before does not hold.
        end: End, in code points.
        tokens: Tokens of the slice.
        over_budget: Whether that is more than the budget, which no cut could mend or the strategy promised.
        kind: Kind of chunk; None to go by the blocks it holds.
        heading_level: Level, for a heading chunk.
        parent: Place of the chunk it stands under among the document's pieces.
        fallback: The strategy that cut it, if not the document's own.
        spans: The spans it consists of, in order, where that is not all from start to end.
        derived: Its text, where that is made from the span rather than its slice.
    """

    start: int
    new: int
    end: int
    tokens: int
    over_budget: bool = False
    kind: str | None = None
    heading_level: int | None = None
    parent: int | None = None
    fallback: str | None = None
    spans: tuple[Span, ...] | None = None
    derived: str | None = None


class Packer:
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
        by_kind: Mapping[str, Ladder] | None = None,
        levels: Mapping[str, Callable[[Measured], Level]] | None = None,
        overlap_of: LevelName | None = None,
    ) -> None:
        self._measured = measured
        self._size = size
        self._overlap = overlap
        self._ladder = ladder
        self._by_kind = {"code": CODE, "table": TABLE} if by_kind is None else by_kind
        self._own_levels = levels or {}
        self._overlap_of = overlap_of
        self._levels: dict[LevelName, Level] = {}
        blocks = measured.blocks
        self._block_starts = [block.start for block in blocks]
        self._barriers = [block.end for block in blocks if block.kind in _NO_OVERLAP_ACROSS]
        wholes = [self._wholes(block) for block in blocks if block.kind in _KEPT_WHOLE]
        self._kept_whole = [span for spans in wholes for span in spans]
        if measured.bound:
            self._bind(measured.bound)
        self._whole_starts = [start for start, _ in self._kept_whole]

    def _bind(self, bound: Sequence[Span]) -> None:
        """Keep further spans whole if they fit, with all that is kept whole inside."""
        spans = sorted([*self._kept_whole, *(span for span in bound if self._fits(*span))], key=_outer_first)
        self._kept_whole = []
        for span in spans:
            if not self._kept_whole or span[1] > self._kept_whole[-1][1]:
                self._kept_whole.append(span)

    def _wholes(self, block: Block) -> list[Span]:
        """What of a block stays whole: all of it, else those of its rows that fit."""
        parts = [(block.start, block.end)]
        if self._fits(*parts[0]):
            return parts
        return [part for part in self._measured.rows_of(block) if self._fits(*part)]

    def _fits(self, start: int, end: int) -> bool:
        return self._measured.count(start, end) <= self._measured.room(start, self._size)

    def pack(self, start: int, end: int) -> Iterator[Piece]:
        """Chunks of [start, end), in order.

        Args:
            start: First character, in code points.
            end: End of what is packed.
        """
        for low, high in self._measured.regions:
            if low < end and start < high:
                yield from self._pack_region(max(low, start), min(high, end))

    def _pack_region(self, start: int, end: int) -> Iterator[Piece]:
        measured = self._measured
        text, reach_from, begin, finish = measured.text, measured.reach, measured.begin, measured.finish
        room = measured.room
        previous = None
        new = begin(start, end)
        # What is being packed: the end of the piece at hand, that end trimmed, its ladder, and the level on it.
        stack = [(end, finish(end, new), self._ladder, 0)]
        while stack:
            stop, last, ladder, depth = stack[-1]
            if new >= last:
                stack.pop()
                continue
            lead = self.lead(previous, new) if previous and self._overlap else new
            black = white_end(text, new, stop) if text[new].isspace() else new
            size = room(lead, self._size)
            reach = reach_from(lead, size)
            piece = self._whole(lead, new, last, size) if last <= reach else None
            while piece is None:
                if depth == len(ladder):
                    piece = self._graphemes(lead, new, black, stop, size)
                    break
                level = self.level(ladder[depth])
                piece = self._longest(level, lead, new, black, stop, reach, size)
                if piece:
                    break
                # Not even the first piece of this level fits: it goes down the ladder.
                boundary = level.first(black, stop)
                if boundary is not None:
                    boundary = measured.edge_after(boundary)
                if boundary is None or boundary >= stop:
                    stack.pop()
                else:
                    stop, last = boundary, finish(boundary, new)
                if lead < new:
                    size = room(new, self._size)
                    piece = self._whole(new, new, last, size) if last <= reach_from(new, size) else None
                    if piece and previous:
                        piece = self._lengthened(piece, lead, previous.end, size)
                    size = room(lead, self._size)
                ladder, depth = self._finer(ladder, depth, new, last)
                stack.append((stop, last, ladder, depth))
            yield piece
            previous = piece
            new = begin(piece.end, end)

    def _whole(self, start: int, new: int, end: int, size: int) -> Piece | None:
        """All that is left of the piece at hand, up to its trimmed end, if it fits."""
        tokens = self._measured.count(start, end)
        return Piece(start, new, end, tokens) if tokens <= size else None

    def _longest(
        self, level: Level, start: int, new: int, black: int, stop: int, reach: int, size: int
    ) -> Piece | None:
        """The most pieces of a level that fit together, if any does."""
        measured = self._measured
        furthest = min(reach, stop - 1)
        before = stop
        while furthest > black:
            boundary = level.last(black, furthest)
            if boundary is None:
                return None
            boundary = measured.edge_after(boundary)
            if boundary < before:
                end = measured.finish(boundary, new)
                if end <= reach:
                    tokens = measured.count(start, end)
                    if tokens <= size:
                        return Piece(start, new, end, tokens)
                before = boundary
                furthest = min(furthest, end)
            furthest -= 1
        return None

    def _graphemes(self, start: int, new: int, black: int, stop: int, size: int) -> Piece:
        """The most grapheme clusters that fit; one that does not fit alone is a chunk over budget."""
        measured = self._measured
        bare = max(new, measured.edge_before(black))
        for lead in dict.fromkeys((start, new, bare)):
            edge = measured.edge_before(min(measured.reach(lead, size), stop))
            while edge > black:
                end = measured.finish(edge, new)
                tokens = measured.count(lead, end)
                if tokens <= size:
                    return Piece(lead, max(lead, new), end, tokens)
                # Of n tokens too many, about the share of n is cut off; a character can be several.
                edge = measured.edge_before(edge - max(1, (end - lead) * (tokens - size) // tokens))
        end = measured.edge_after(black + 1)
        tokens = measured.count(bare, end)
        return Piece(bare, bare, end, tokens, over_budget=tokens > self._size)

    def lead(self, previous: Piece, new: int) -> int:
        """Where a chunk after `previous` starts: the overlap that the settings allow, on the best boundary."""
        end = previous.end
        low = max(previous.new, self._barrier(end)) if self._barriers else previous.new
        if low >= end or (self._overlap_of and self.level(self._overlap_of).first(end - 1, new + 1) is None):
            return new
        low = max(low, self._measured.ruler.back(end, self._overlap), previous.start + 1)
        lead = self._first_that_fits(low, end, end, self._overlap)
        return new if lead is None else lead

    def _lengthened(self, piece: Piece, lead: int, shared_end: int, size: int) -> Piece:
        """`piece` with as much of the overlap from `lead` to `shared_end` as the budget allows."""
        measured = self._measured
        low = max(lead + 1, measured.ruler.back(piece.end, size))
        start = self._first_that_fits(low, piece.new, piece.end, size)
        # Less of an overlap can have more tokens than all of it.
        if start is not None and measured.count(start, shared_end) <= self._overlap:
            piece.start, piece.tokens = start, measured.count(start, piece.end)
        return piece

    def _first_that_fits(self, low: int, high: int, end: int, budget: int) -> int | None:
        """First good place in [low, high) that is within the budget of `end`: a sentence, else a line, a word, a
        grapheme.
        """
        measured = self._measured
        text, count = measured.text, measured.count
        for name in (self._overlap_of,) if self._overlap_of else _OVERLAP_LEVELS:
            level, place = self.level(name), low - 1
            for _ in range(_TRIES):
                boundary = level.first(place, high)
                if boundary is None:
                    break
                start = measured.edge_after(boundary)
                if start < high and text[start].isspace():
                    start = measured.begin(start, high)
                if start < high and count(start, end) <= budget:
                    return start
                place = boundary
        start = measured.edge_after(low)
        if self._overlap_of or self._is_inside_whole(start):
            return None
        for _ in range(_TRIES):
            if start < high and not text[start].isspace() and count(start, end) <= budget:
                return start
            start = measured.edge_after(start + 1)
        return None

    def _is_inside_whole(self, position: int) -> bool:
        """Whether what stays whole would be cut at a position."""
        place = bisect_right(self._whole_starts, position - 1) - 1
        return place >= 0 and position < self._kept_whole[place][1]

    def _finer(self, ladder: Ladder, depth: int, start: int, end: int) -> tuple[Ladder, int]:
        """The ladder and level for a piece that is too large for this one."""
        kind = self._kind_of(start, end) if self._block_starts else None
        finer = self._by_kind.get(kind) if kind else None
        return (ladder, depth + 1) if finer is None or finer is ladder else (finer, 0)

    def _kind_of(self, start: int, end: int) -> str | None:
        """Kind of the block that holds all of a slice, if one does."""
        blocks = self._measured.blocks
        place = bisect_right(self._block_starts, start) - 1
        if place < 0 or end > blocks[place].end:
            return None
        return blocks[place].kind

    def _barrier(self, end: int) -> int:
        """End of the last block before `end` that no overlap reaches into."""
        place = bisect_right(self._barriers, end) - 1
        return self._barriers[place] if place >= 0 else 0

    def level(self, name: LevelName) -> Level:
        """A level by its name, without the boundaries inside what is kept whole."""
        return self._levels.get(name) or self._make_level(name)

    def _make_level(self, name: LevelName) -> Level:
        measured = self._measured
        level: Level
        if isinstance(name, str) and name in self._own_levels:
            level = self._own_levels[name](measured)
        elif isinstance(name, tuple):
            level = boundaries.separators(measured.text, name)
        elif name == "block":
            level = boundaries.block_edges(measured.blocks)
        elif name == "row":
            ends = [end for table in measured.tables() for _, end in table.header_and_rows]
            level = PlaceLevel(ends, ends)
        else:
            level = _LEVELS[name](measured.text)
        if self._kept_whole:
            level = KeepingWhole(level, self._kept_whole)
        self._levels[name] = level
        return level


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
