"""The strategy `pages`: a chunk for each page or slide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

from transforms.chunkers.base import Chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import PROSE, Packer
from transforms.chunkers.pieces import Piece

_FORM_FEED = "\x0c"


class PagesChunker(Chunker):
    """One chunk per page or slide; a page over the budget is cut at its paragraphs, lines, sentences or words.

    A page begins with the first block that stands on it; in a text whose blocks know no pages, after a form feed.
    Overlap stays within a page.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    name: ClassVar[str] = "pages"

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        packer = measured.prepared(self, self._packer)
        starts = [place for place in _page_starts(measured) if start < place < end]
        for page in pairwise([start, *starts, end]):
            yield from packer.pack(*page)

    def _packer(self, measured: Measured) -> Packer:
        return Packer(measured, self.chunk_size, self.chunk_overlap, PROSE)


def _page_starts(measured: Measured) -> Iterator[int]:
    """Where pages begin but for the first, ascending."""
    located = [block for block in measured.blocks if block.locations]
    for before, block in pairwise(located):
        # What runs over the end of a page belongs to both, and the next block to the later one.
        if block.locations[0].page not in {location.page for location in before.locations}:
            yield block.start
    if located:
        return
    text, at = measured.text, measured.text.find(_FORM_FEED)
    while at >= 0:
        yield measured.edge_after(at + 1)
        at = text.find(_FORM_FEED, at + 1)
