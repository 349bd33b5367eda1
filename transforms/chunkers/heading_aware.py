"""The strategy `heading_aware`: a chunk per heading, and the body below it as its children."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from transforms.chunkers.base import Chunker
from transforms.chunkers.filling import Ladder
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import CODE, PROSE, TABLE, Packer
from transforms.chunkers.pieces import Piece

_BY_BLOCK: Ladder = ("block", *PROSE)
# Lines of a paragraph are the width of somebody's editor; sentences are the author's.
_PARAGRAPH: Ladder = ("sentence", "line", "clause", "word", "link")
_BY_KIND = {"paragraph": _PARAGRAPH, "quote": _PARAGRAPH, "heading": _PARAGRAPH, "code": CODE, "table": TABLE}


class HeadingAwareChunker(Chunker):
    """Headings as chunks of their own; the blocks between two headings packed under the heading in force.

    A heading chunk stands under the nearest heading before it of a smaller level, a body chunk under its heading.
    Overlap stays within a section. A document without blocks is packed by its paragraphs.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    name: ClassVar[str] = "heading_aware"

    # 64 tokens, or half of a small budget, so that a small `chunk_size` needs no second setting.
    chunk_overlap: int = Field(default_factory=lambda data: min(64, data.get("chunk_size", 1) // 2))

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        packer = measured.prepared(self, self._packer)
        open_headings: list[tuple[int, int]] = []
        placed, body = 0, start
        for block in measured.headings(start, end):
            parent = open_headings[-1][1] if open_headings else None
            for piece in packer.pack(body, block.start):
                piece.parent = parent
                yield piece
                placed += 1
            level = block.level or 1
            while open_headings and open_headings[-1][0] >= level:
                open_headings.pop()
            parent = open_headings[-1][1] if open_headings else None
            first = placed
            for piece in packer.pack(block.start, block.end):
                piece.kind, piece.heading_level, piece.parent = "heading", level, parent
                yield piece
                placed += 1
            # Under a heading of white space, which has no chunk, nothing can stand.
            if placed > first:
                open_headings.append((level, first))
            body = block.end
        for piece in packer.pack(body, end):
            piece.parent = open_headings[-1][1] if open_headings else None
            yield piece

    def _packer(self, measured: Measured) -> Packer:
        return Packer(measured, self.chunk_size, self.chunk_overlap, _BY_BLOCK, _BY_KIND)
