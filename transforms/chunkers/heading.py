"""The strategy `heading`: one chunk per section, as far as it fits."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from transforms.chunkers.base import Chunker, nested_chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import join, whole
from transforms.chunkers.pieces import Piece
from transforms.records import Block, Span


class HeadingChunker(Chunker):
    """Sections between headings of level `split_level` and above; large ones are cut at their deeper headings.

    What is still too large goes to the fallback, and so does a document without headings. A chunk stands under the
    chunk that holds the innermost heading around it.

    Args:
        split_level: Deepest level that starts a section, 1 to 6.
        fallback: What cuts a part that is too large: the name of a strategy, a table of its settings with its
            `name`, or a chunker. It takes size, overlap, tokenizer and engine from here unless it has its own.
        min_chunk_size: If positive, a heading with no body of its own joins the section after it, if both fit,
            instead of standing alone.

    Raises:
        ConfigError: If a setting is unknown or refused, or the fallback's chunks could be larger.
    """

    name: ClassVar[str] = "heading"

    chunk_size: int = Field(default=256, ge=1)
    split_level: int = Field(default=2, ge=1, le=6)
    fallback: Chunker = Field(default="recursive")  # type: ignore[assignment]  # the validator makes it one
    min_chunk_size: int = Field(default=0, ge=0)

    @field_validator("fallback", mode="before")
    @classmethod
    def _make_fallback(cls, value: object, info: ValidationInfo) -> object:
        return nested_chunker(value, info)

    def counting(self) -> dict[str, Any]:
        """Every setting as it counts: overlap is that of the chunker within, which has settings of its own."""
        return {**self.settings(), "chunk_overlap": 0, "min_chunk_size": min(self.min_chunk_size, 1)}

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        headings = measured.headings(start, end)
        if not headings:
            yield from self._fall_back(measured, (start, end))
            return
        starts = [heading.start for heading in headings]
        tree = _Tree(headings)
        for section in self._sections(measured, headings, start, end):
            deeper = starts[bisect_right(starts, section[0]) : bisect_left(starts, section[1])]
            for piece in self._cut_section(measured, section, deeper):
                piece.parent = tree.place(piece)
                yield piece

    def _sections(
        self, measured: Measured, headings: Sequence[Block], start: int, end: int
    ) -> Iterator[Span]:
        opening = [heading for heading in headings if heading.level and heading.level <= self.split_level]
        sections = _parts(measured, start, end, [heading.start for heading in opening])
        if not self.min_chunk_size:
            yield from sections
            return
        body = {heading.start: heading.end for heading in opening}
        held: Span | None = None
        for section in sections:
            joined = (held[0], section[1]) if held else section
            if held and not whole(measured, *joined, self.chunk_size):
                yield held
                joined = section
            held = joined
            if measured.begin(body.get(section[0], section[0]), section[1]) < section[1]:
                yield joined
                held = None
        if held:
            yield held

    def _cut_section(self, measured: Measured, section: Span, deeper: Sequence[int]) -> Iterator[Piece]:
        piece = whole(measured, *section, self.chunk_size)
        if piece:
            yield piece
            return
        for span, piece in join(measured, _parts(measured, *section, deeper), self.chunk_size):
            if piece:
                yield piece
            else:
                yield from self._fall_back(measured, span)

    def _fall_back(self, measured: Measured, span: Span) -> Iterator[Piece]:
        for piece in self.fallback.cut(measured, *span):
            piece.fallback = self.fallback.name
            yield piece


def _parts(measured: Measured, start: int, end: int, starts: Sequence[int]) -> list[Span]:
    """What lies between places of [start, end), without what is blank."""
    edges = [start, *starts, end]
    return [part for part in pairwise(edges) if part[0] < part[1] and measured.begin(*part) < part[1]]


class _Tree:
    """Which chunk holds each heading in force, while chunks are placed one after the other."""

    def __init__(self, headings: Sequence[Block]) -> None:
        self._headings = headings
        self._next = 0
        self._placed = 0
        self._open: list[tuple[int, int]] = []

    def place(self, piece: Piece) -> int | None:
        """The parent of the next chunk: the one that holds the innermost heading around its start."""
        parent = self._innermost()
        while self._next < len(self._headings) and self._headings[self._next].start < piece.end:
            heading = self._headings[self._next]
            level = heading.level or 1
            while self._open and self._open[-1][0] >= level:
                self._open.pop()
            if heading.start <= piece.new:
                parent = self._innermost()
            self._open.append((level, self._placed))
            self._next += 1
        self._placed += 1
        return parent

    def _innermost(self) -> int | None:
        return self._open[-1][1] if self._open else None
