"""A piece: a chunk to be, as a strategy cuts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from transforms.chunkers import compiled
from transforms.records import Span

if TYPE_CHECKING or not compiled.native:

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

else:
    Piece = compiled.native.Piece
