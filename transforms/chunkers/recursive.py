"""The strategy `recursive`: blank lines first, then lines, sentences, clauses, words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field, field_validator

from transforms.chunkers.base import Chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import PROSE, Packer, whole
from transforms.chunkers.pieces import Piece


def _sorted(level: object) -> object:
    """A level without what stands twice; the longest separator that matches counts, so their order says nothing."""
    if isinstance(level, list | tuple) and all(isinstance(separator, str) for separator in level):
        return tuple(sorted(set(level)))
    return level


class RecursiveChunker(Chunker):
    """Splits at the coarsest level present, joins neighbours while they fit, and goes down only where it must.

    Args:
        separators: Levels that replace the usual ladder, coarse to fine: each a string, or a list of strings of
            which the longest that matches counts. A separator stays with the piece on its left. Whatever is
            still too large is cut between grapheme clusters, as by the separator "".
        min_chunk_size: A last chunk with fewer tokens is joined to the one before it if both fit, from 0 to
            `chunk_size`.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    name: ClassVar[str] = "recursive"

    separators: tuple[tuple[str, ...], ...] | None = None
    min_chunk_size: int = Field(default=0, ge=0)

    @field_validator("separators", mode="before")
    @classmethod
    def _levels(cls, value: object) -> object:
        if not isinstance(value, list | tuple):
            return value
        levels = [(level,) if isinstance(level, str) else _sorted(level) for level in value]
        if () in levels or [] in levels:
            raise ValueError("a level has no separator")
        # The empty separator ends the ladder; below it there is nothing to cut.
        groups = (
            place for place, level in enumerate(levels) if isinstance(level, list | tuple) and "" in level
        )
        return levels[: next(groups, len(levels))]

    def cut(self, measured: Measured, start: int, end: int) -> Iterable[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        piece = whole(measured, start, end, self.chunk_size)
        if piece:
            return [piece]
        pieces = measured.prepared(self, self._packer).pack(start, end)
        if len(pieces) > 1 and pieces[-1].tokens < self.min_chunk_size:
            before, last = pieces[-2:]
            tokens = measured.count(before.start, last.end)
            if tokens <= self.chunk_size:
                pieces[-2:] = [Piece(before.start, before.new, last.end, tokens)]
        return pieces

    def _packer(self, measured: Measured) -> Packer:
        if self.separators is None:
            return Packer(measured, self.chunk_size, self.chunk_overlap, PROSE)
        return Packer(measured, self.chunk_size, self.chunk_overlap, self.separators, {})
