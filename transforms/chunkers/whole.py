"""The strategy `whole`: a document as one chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from transforms.chunkers.base import Chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece


class WholeChunker(Chunker):
    """The document as one chunk, marked if it is over the budget.

    Only 100,000 characters of white space in a row divide it, since no chunk holds as many.

    Raises:
        ConfigError: If a setting is unknown or refused, as any `chunk_overlap` is.
    """

    name: ClassVar[str] = "whole"
    overlap_settings: ClassVar[tuple[str, ...]] = ()

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        return uncut(measured, start, end, self.chunk_size)


def uncut(measured: Measured, start: int, end: int, size: int, kind: str | None = None) -> Iterator[Piece]:
    """All of [start, end) as one chunk, whatever its size; one for each side of a hard gap.

    Args:
        measured: The document.
        start: First character, in code points.
        end: End of the slice.
        size: Budget, in tokens.
        kind: Kind of chunk; None to go by the blocks it holds.
    """
    for low, high in measured.regions:
        first, last = measured.trim(max(low, start), max(low, start, min(high, end)))
        if first < last:
            tokens = measured.count(first, last)
            yield Piece(first, first, last, tokens, over_budget=tokens > size, kind=kind)
