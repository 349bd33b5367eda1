"""Filling: chunks that take of a text as much as their budget allows, cut where it divides best."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence

from transforms.chunkers.edges import white_end
from transforms.chunkers.levels import Level
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.records import Block, Span

# Levels of a ladder, coarse to fine: a name, or the separators of one level. Graphemes come after all.
LevelName = str | tuple[str, ...]
Ladder = tuple[LevelName, ...]


class Filler:
    """Fills chunk after chunk of one document, greedily and level by level.

    Args:
        measured: The document.
        size: Budget of a chunk, in tokens.
        overlap: Most tokens a chunk shares with the one before.
        ladder: Levels at which to cut, coarse to fine.
        by_kind: Ladders for what lies in a block of a certain kind.
        overlap_levels: Where an overlap starts best; the first of these that offers anything in reach is taken.
        overlap_of: That one of them whose whole pieces an overlap consists of, or there is none.
        kept_whole: Kinds of blocks that stay whole while they fit; of a table that does not, the rows do.
        not_shared: Kinds of blocks that no overlap reaches into.
        tries: Boundaries tried at one level before the next finer one is; each costs a count.

    Attributes:
        barriers: Positions across which no overlap reaches, ascending.
        whole_starts: Where what is kept whole starts, ascending.
        whole_ends: Where each of these ends.
    """

    def __init__(
        self,
        measured: Measured,
        size: int,
        overlap: int,
        ladder: Ladder,
        by_kind: Mapping[str, Ladder],
        overlap_levels: Sequence[LevelName],
        overlap_of: LevelName | None,
        kept_whole: Collection[str],
        not_shared: Collection[str],
        tries: int,
    ) -> None:
        self._measured = measured
        self._size = size
        self._overlap = overlap
        self._ladder = ladder
        self._by_kind = by_kind
        self._overlap_levels = overlap_levels
        self._overlap_of = overlap_of
        self._tries = tries
        self._levels: dict[LevelName, Level] = {}
        blocks = measured.blocks
        self.barriers = [block.end for block in blocks if block.kind in not_shared]
        wholes = [span for block in blocks if block.kind in kept_whole for span in self._wholes(block)]
        self.whole_starts = [start for start, _ in wholes]
        self.whole_ends = [end for _, end in wholes]

    def _wholes(self, block: Block) -> list[Span]:
        """What of a block stays whole: all of it, else those of its rows that fit."""
        if self._fits(block.start, block.end):
            return [(block.start, block.end)]
        return [row for row in self._measured.rows_of(block) if self._fits(*row)]

    def _fits(self, start: int, end: int) -> bool:
        """Whether a slice is within the budget."""
        return self._measured.count(start, end) <= self._measured.room(start, self._size)

    def level(self, name: LevelName) -> Level:
        """A level by its name."""
        if name not in self._levels:
            self._levels[name] = self._make_level(name)
        return self._levels[name]

    def _make_level(self, name: LevelName) -> Level:
        """A level that is asked for the first time, which a packer can make."""
        raise NotImplementedError

    def pack(self, start: int, end: int) -> list[Piece]:
        """Chunks of [start, end), in order.

        Args:
            start: First character, in code points.
            end: End of what is packed.
        """
        pieces: list[Piece] = []
        for low, high in self._measured.regions:
            if low < end and start < high:
                self._pack_region(max(low, start), min(high, end), pieces)
        return pieces

    def _pack_region(self, start: int, end: int, pieces: list[Piece]) -> None:
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
            pieces.append(piece)
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
        low = max(previous.new, self._barrier(end)) if self.barriers else previous.new
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
        for name in self._overlap_levels:
            level, place = self.level(name), low - 1
            for _ in range(self._tries):
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
        for _ in range(self._tries):
            if start < high and not text[start].isspace() and count(start, end) <= budget:
                return start
            start = measured.edge_after(start + 1)
        return None

    def _is_inside_whole(self, position: int) -> bool:
        """Whether what stays whole would be cut at a position."""
        place = bisect_right(self.whole_starts, position - 1) - 1
        return place >= 0 and position < self.whole_ends[place]

    def _finer(self, ladder: Ladder, depth: int, start: int, end: int) -> tuple[Ladder, int]:
        """The ladder and level for a piece that is too large for this one."""
        kind = self._measured.kind_of(start, end)
        finer = self._by_kind.get(kind) if kind else None
        return (ladder, depth + 1) if finer is None or finer is ladder else (finer, 0)

    def _barrier(self, end: int) -> int:
        """End of the last block before `end` that no overlap reaches into."""
        place = bisect_right(self.barriers, end) - 1
        return self.barriers[place] if place >= 0 else 0
