"""The strategy `token`: windows of tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from pydantic import Field

from transforms.chunkers.base import Chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
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
            for window in self._windows(measured, max(low, start), min(high, end)):
                piece_start, piece_end, tokens = window.start, window.end, window.tokens
                if piece_start == piece_end or piece_end <= covered:
                    continue  # trimmed, a window can be blank or lie inside the one before
                while tokens > self.chunk_size and piece_start < covered:
                    # Fewer characters can be more tokens; what the chunk before holds can be left out.
                    piece_start = measured.edge_after(piece_start + 1)
                    tokens = measured.count(piece_start, piece_end)
                new = max(piece_start, covered)
                yield Piece(piece_start, new, piece_end, tokens, tokens > self.chunk_size)
                covered = piece_end

    def windows(self, measured: Measured, start: int, end: int) -> Iterator[Span]:
        """The windows as the budget cuts them, white space included, up to the first that reaches `end`."""
        return (window.whole for window in self._windows(measured, start, end))

    def _windows(self, measured: Measured, start: int, end: int) -> Iterator[_Window]:
        ends: memoryview[int] = memoryview(measured.ruler.ends)  # type: ignore[arg-type]
        while start < end:
            size = measured.room(start, self.chunk_size)
            last = bisect_right(ends, start) + size - 1
            stop = min(ends[last], end) if last < len(ends) else end
            window = _inward(measured, start, measured.edge_before(stop), size)
            yield window
            stop = window.whole[1]
            if stop >= end:
                return
            # The step is counted from where the window really ended, so that nothing between two is left out.
            first = bisect_left(ends, stop) + 1 - min(self.chunk_overlap, size - 1)
            step = measured.edge_after(ends[first - 1]) if first > 0 else 0
            # Where the white space before it is left out a window begins later, and the next one after that.
            begun = window.start if window.start < stop else start
            start = max(step, measured.edge_after(begun + 1)) if step < stop else stop


class _Window(NamedTuple):
    """A window of tokens.

    Args:
        whole: All of it, white space included.
        start: Where it starts without that.
        end: Where it ends without that.
        tokens: Tokens from there to there.
    """

    whole: Span
    start: int
    end: int
    tokens: int


def _inward(measured: Measured, start: int, stop: int, size: int) -> _Window:
    """The window up to `stop`, or to where it is within the budget by itself, trimmed or not, or its first cluster."""
    smallest = measured.edge_after(start + 1)
    while True:
        stop = max(stop, smallest)
        trimmed_start = measured.begin(start, stop, keep_spaces=True)
        trimmed_stop = measured.finish(stop, trimmed_start)
        tokens = most = measured.count(trimmed_start, trimmed_stop)
        if (trimmed_start, trimmed_stop) != (start, stop):
            most = max(tokens, measured.count(start, stop))
        if most <= size or stop == smallest:
            return _Window((start, stop), trimmed_start, trimmed_stop, tokens)
        stop = measured.edge_before(stop - max(1, (stop - start) * (most - size) // most))
