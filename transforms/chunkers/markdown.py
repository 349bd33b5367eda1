"""The strategy `markdown`: sections of a README or note, in windows of a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

from pydantic import Field

from transforms.chunkers.base import Chunker
from transforms.chunkers.heading import HeadingChunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.parsers.markdown import parse_markdown


class MarkdownChunker(Chunker):
    """Sections between headings of any level, none with more than `max_lines` lines; larger ones in windows.

    A heading without a body of its own joins the section after it, if both fit. A document whose blocks nobody has
    found is read as CommonMark, whatever its media type, so that this serves README files and plain notes too;
    what stands in code, comments and front matter is no heading.

    Args:
        max_lines: Most lines of a chunk; 0 for no limit but `chunk_size`.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    name: ClassVar[str] = "markdown"

    max_lines: int = Field(default=30, ge=0)

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        if not measured.blocks:
            measured.take_blocks(parse_markdown(measured.text)[0])
        with measured.at_most_lines(self.max_lines):
            yield from self._sections.cut(measured, start, end)

    @cached_property
    def _sections(self) -> HeadingChunker:
        shared = {key: getattr(self, key) for key in Chunker.model_fields}
        return HeadingChunker(**shared, split_level=6, min_chunk_size=1)
