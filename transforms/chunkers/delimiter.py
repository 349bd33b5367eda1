"""The strategy `delimiter`: pieces between delimiters, packed to the budget; RAGFlow's naive merge."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from transforms.chunkers import boundaries
from transforms.chunkers.base import Chunker
from transforms.chunkers.boundaries import AnyOf
from transforms.chunkers.edges import white_end
from transforms.chunkers.filling import Ladder
from transforms.chunkers.levels import Level
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import PROSE, Packer
from transforms.chunkers.pieces import Piece
from transforms.records import Span

_DELIMITER = "delimiter"
_CHILD = "child delimiter"
_LADDER: Ladder = (_DELIMITER, *PROSE)
_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\\\": "\\"}
_ESCAPE = re.compile(r"\\[nrt\\]")
_ITEM = re.compile(rf"`([^`]*)`|{_ESCAPE.pattern}|[^`]", re.DOTALL)


def _parse(value: object) -> object:
    """Delimiters from a list, or from RAGFlow's one string: bare characters, and longer ones in back quotes."""
    if isinstance(value, str):
        if value.count("`") % 2:
            raise ValueError("a back quote is never closed")
        items = [(item[1], _unescaped(item[1] or item[0])) for item in _ITEM.finditer(value)]
        # Several line breaks are a delimiter; a space in back quotes is a slip that would cut at every word.
        if any(quoted is not None and not item.strip(" \t`") for quoted, item in items):
            raise ValueError("nothing but spaces is in back quotes")
        value = [item for _, item in items]
    if isinstance(value, list | tuple):
        if not all(isinstance(item, str) and item for item in value):
            raise ValueError("each delimiter must be a string that is not empty")
        # The longest that matches counts, so their order says nothing.
        return tuple(sorted(set(value)))
    return value


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0]], text)


Delimiters = Annotated[tuple[str, ...], BeforeValidator(_parse)]


class DelimiterChunker(Chunker):
    """Pieces that end with a delimiter, or where a block of the document does, joined while they fit.

    A delimiter stays with the piece on its left. A piece that is too large is cut at its blank lines, lines,
    sentences, clauses or words.

    Args:
        delimiters: A list of strings, of which the longest that matches counts; or RAGFlow's one string, in which
            each character is one, and so is what stands in back quotes.
        merge: Whether pieces are joined. If not each is a chunk, and only pieces that are cut overlap.
        overlap_percent: Overlap as a share of `chunk_size`, 0 to 90, in place of `chunk_overlap`.
        budget: `hard`, or RAGFlow's `soft`: a chunk takes pieces, whole, until its own text has more than
            `chunk_size` less its share of overlap, and so may be larger than `chunk_size`; then it is marked.
        drop_delimiters: Whether delimiters are left out of the chunks, but for white space. The budget is that
            of the text with them.
        child_delimiters: Where each chunk is cut again, into children that stand under it; empty for none.

    Raises:
        ConfigError: If a setting is unknown or refused, or both `chunk_overlap` and `overlap_percent` are given.
    """

    name: ClassVar[str] = "delimiter"
    overlap_settings: ClassVar[tuple[str, ...]] = ("chunk_overlap", "overlap_percent")

    delimiters: Delimiters = Field(default=("\n", "。", "；", "！", "？"), min_length=1)
    merge: bool = True
    overlap_percent: int = Field(default=0, ge=0, le=90)
    budget: Literal["hard", "soft"] = "hard"
    drop_delimiters: bool = False
    child_delimiters: Delimiters = ()

    @property
    def overlap(self) -> int:
        """Most tokens that neighbours share."""
        return self.chunk_overlap or self.chunk_size * self.overlap_percent // 100

    @property
    def makes_children(self) -> bool:
        """Whether chunks stand inside others, which only the outermost chunker may do."""
        return bool(self.child_delimiters)

    def counting(self) -> dict[str, Any]:
        """Every setting as it counts: those to which the others leave nothing to say are at a default."""
        dropped = self.drop_delimiters and not all(map(str.isspace, self.delimiters))
        settings = {**self.settings(), "drop_delimiters": dropped}
        if self.budget == "soft":
            # There the share is of the limit too, rounded otherwise; and what is not joined has no overlap.
            return settings if self.merge else {**settings, "chunk_overlap": 0, "overlap_percent": 0}
        return {**settings, "chunk_overlap": self.overlap, "overlap_percent": 0}

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        packer, child_packer, removed = measured.prepared(self, self._prepare)
        pieces = self._pieces(measured, packer, start, end)
        if self.drop_delimiters:
            pieces = self._dropped(measured, packer, pieces, removed)
        return self._with_children(measured, child_packer, pieces) if child_packer else pieces

    def _prepare(self, measured: Measured) -> tuple[Packer, Packer | None, list[Span]]:
        """What packs chunks, what packs children if there are any, and the delimiters that are removed."""
        packer = self._packer(measured, self.overlap)
        removed = self._removed(measured, packer) if self.drop_delimiters else []
        return packer, self._packer(measured, 0) if self.child_delimiters else None, removed

    def _packer(self, measured: Measured, overlap: int) -> Packer:
        levels = {
            _DELIMITER: lambda measured: _level(measured, self.delimiters),
            _CHILD: lambda measured: boundaries.delimiters(measured.text, self.child_delimiters),
        }
        return Packer(measured, self.chunk_size, overlap, _LADDER, levels=levels)

    def _pieces(self, measured: Measured, packer: Packer, start: int, end: int) -> Iterator[Piece]:
        if self.budget == "soft":
            yield from self._soft(measured, packer, start, end)
        elif self.merge:
            yield from packer.pack(start, end)
        else:
            for part in self._parts(measured, packer.level(_DELIMITER), start, end, self.delimiters):
                yield from packer.pack(*part)

    def _soft(self, measured: Measured, packer: Packer, start: int, end: int) -> Iterator[Piece]:
        """Groups of pieces, each closed once it has passed the share of the budget."""
        level = packer.level(_DELIMITER)
        limit = (
            self.chunk_size * (100 - self.overlap_percent) // 100 - self.chunk_overlap if self.merge else -1
        )
        previous = None
        for low, high in measured.regions:
            new, stop = measured.begin(max(low, start), min(high, end)), min(high, end)
            while new < stop:
                close = self._closing(measured, level, new, stop, limit)
                last = measured.finish(close, new)
                lead = packer.lead(previous, new) if previous and self.overlap and self.merge else new
                tokens = measured.count(lead, last)
                previous = Piece(lead, new, last, tokens, over_budget=tokens > self.chunk_size)
                yield previous
                new = measured.begin(close, stop)

    def _closing(self, measured: Measured, level: Level, new: int, stop: int, limit: int) -> int:
        """End of the first pieces from `new` on that together have more than `limit` tokens."""
        # The indentation alone is no piece.
        at = black = white_end(measured.text, new, stop)
        if limit > 0:
            furthest = min(measured.ruler.reach(new, limit), stop - 1)
            while furthest > black and (found := level.last(black, furthest)) is not None:
                edge = measured.edge_after(found)
                if edge < stop and measured.count(new, measured.finish(edge, new)) <= limit:
                    at = edge
                    break
                furthest = min(furthest, found - 1) - 1
        while (found := level.first(at, stop)) is not None:
            at = max(measured.edge_after(found), at + 1)
            if at < stop and measured.count(new, measured.finish(at, new)) > limit:
                return at
        return stop

    def _parts(
        self, measured: Measured, level: Level, start: int, end: int, delimiters: Sequence[str]
    ) -> Iterator[Span]:
        """What ends with delimiters, one or several in a row."""
        low = at = start
        while (found := level.first(at, end)) is not None:
            at = max(measured.edge_after(found), at + 1)
            if at < end and not measured.text.startswith(tuple(delimiters), at):
                yield low, at
                low = at
        yield low, end

    def _removed(self, measured: Measured, packer: Packer) -> list[Span]:
        """The delimiters to leave out: not white space, since words would run together; not parts of a letter."""
        level, removed = packer.level(_DELIMITER), []
        for start, end in boundaries.matches(measured.text, self.delimiters):
            is_boundary = end == len(measured.text) or level.first(end - 1, end + 1) == end
            is_whole = measured.edge_before(start) == start and measured.edge_before(end) == end
            if is_boundary and is_whole and not measured.text[start:end].isspace():
                removed.append((start, end))
        measured.removed = removed
        if removed:
            measured.note("dropped delimiters", len(removed))
        return removed

    def _dropped(
        self, measured: Measured, packer: Packer, pieces: Iterator[Piece], removed: Sequence[Span]
    ) -> Iterator[Piece]:
        """The pieces without what is removed; those of which nothing is left are none."""
        previous = -1
        for piece in pieces:
            own = _without(measured, piece.new, piece.end, removed)
            if not own:
                continue
            spans = _without(measured, piece.start, piece.end, removed)
            if spans[0][0] <= previous:
                spans = own
            tokens = self.counter.count("".join(measured.text[slice(*span)] for span in spans))
            if tokens > self.chunk_size and self.budget == "hard" and not piece.over_budget:
                # Hardly ever: what is left has more tokens than all of it had.
                parts = (part for span in own for part in packer.pack(*span))
                for part in parts:
                    previous = part.start
                    yield part
                continue
            previous = spans[0][0]
            yield Piece(
                previous,
                max(own[0][0], previous),
                spans[-1][1],
                tokens,
                over_budget=tokens > self.chunk_size,
                spans=tuple(spans) if len(spans) > 1 else None,
            )

    def _with_children(self, measured: Measured, packer: Packer, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Each piece, and after it what child delimiters make of its new text, if that is more than one."""
        level, placed = packer.level(_CHILD), 0
        for piece in pieces:
            yield piece
            parent, placed = placed, placed + 1
            spans = [(max(low, piece.new), high) for low, high in piece.spans or ((piece.start, piece.end),)]
            children = [
                child
                for low, high in spans
                if low < high
                for part in self._parts(measured, level, low, high, self.child_delimiters)
                for child in packer.pack(*part)
            ]
            for child in children if len(children) > 1 else ():
                child.parent = parent
                yield child
                placed += 1


def _level(measured: Measured, delimiters: Sequence[str]) -> Level:
    """Boundaries after delimiters and between blocks."""
    level, blocks = boundaries.delimiters(measured.text, delimiters), measured.blocks
    if not blocks:
        return level
    return AnyOf([boundaries.block_edges(blocks), level])


def _without(measured: Measured, start: int, end: int, removed: Sequence[Span]) -> list[Span]:
    """What is left of a slice, with clean edges."""
    left, at = [], start
    place = max(0, bisect_right(removed, (start, start)) - 1)
    while place < len(removed) and removed[place][0] < end:
        low, high = removed[place]
        if at < low:
            left.append((at, low))
        at = max(at, high)
        place += 1
    if at < end:
        left.append((at, end))
    while left and measured.begin(*left[0]) >= left[0][1]:
        del left[0]
    while left and measured.text[slice(*left[-1])].isspace():
        left.pop()
    if left:
        left[0] = (measured.begin(*left[0]), left[0][1])
        left[-1] = (left[-1][0], measured.finish(left[-1][1], left[-1][0]))
    return left
