"""The strategy `token`: windows of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from transforms.chunkers.base import Chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import Piece
from transforms.records import Span


class TokenChunker(Chunker):
    """Windows of `chunk_size` tokens over one tokenisation of the text, each `chunk_overlap` back into the last.

    A window edge that falls inside a grapheme cluster moves inward, so a window may be shorter than `chunk_size`
    and, but for a single cluster, is never longer. White space at the edges of a window is left out of its chunk.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    name: ClassVar[str] = "token"

    chunk_size: int = Field(default=256, ge=1)

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        covered = start - 1
        for low, high in measured.regions:
            for window in self.windows(measured, max(low, start), min(high, end)):
                piece_start, piece_end = _trimmed(measured, *window)
                if piece_start == piece_end or piece_end <= covered:
                    continue  # trimmed, a window can be blank or lie inside the one before
                tokens = measured.count(piece_start, piece_end)
                while tokens > measured.room(piece_start, self.chunk_size) and piece_start < covered:
                    # Fewer characters can be more tokens; what the chunk before holds can be left out.
                    piece_start = measured.edge_after(piece_start + 1)
                    tokens = measured.count(piece_start, piece_end)
                new = max(piece_start, covered)
                yield Piece(piece_start, new, piece_end, tokens, tokens > self.chunk_size)
                covered = piece_end

    def windows(self, measured: Measured, start: int, end: int) -> Iterator[Span]:
        """The windows as the budget cuts them, white space included, up to the first that reaches `end`."""
        ends = measured.ruler.ends
        first = int(ends.searchsorted(start, "right"))
        while start < end:
            size = measured.room(start, self.chunk_size)
            last = first + size - 1
            stop = min(int(ends[last]), end) if last < len(ends) else end
            stop = _inward(measured, start, measured.edge_before(stop), size)
            yield start, stop
            if stop >= end:
                return
            # The step is counted from where the window really ended, so that nothing between two is left out.
            first = int(ends.searchsorted(stop, "left")) + 1 - min(self.chunk_overlap, size - 1)
            step = measured.edge_after(int(ends[first - 1])) if first > 0 else 0
            # Where the white space before it is left out a window begins later, and the next one after that.
            begun = measured.begin(start, stop, keep_spaces=True)
            progress = measured.edge_after((begun if begun < stop else start) + 1)
            start = max(step, progress) if step < stop else stop
            first = int(ends.searchsorted(start, "right"))


def _inward(measured: Measured, start: int, stop: int, size: int) -> int:
    """End of a window that is within the budget by itself, trimmed or not, or of its first cluster."""
    smallest = measured.edge_after(start + 1)
    while stop > smallest:
        tokens = max(measured.count(start, stop), measured.count(*_trimmed(measured, start, stop)))
        if tokens <= size:
            return stop
        stop = measured.edge_before(stop - max(1, (stop - start) * (tokens - size) // tokens))
    return max(stop, smallest)


def _trimmed(measured: Measured, start: int, end: int) -> Span:
    start = measured.begin(start, end, keep_spaces=True)
    return start, measured.finish(end, start)
