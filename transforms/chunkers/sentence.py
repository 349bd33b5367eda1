"""The strategy `sentence`: whole sentences, as many as fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from transforms.chunkers import boundaries
from transforms.chunkers.base import Chunker
from transforms.chunkers.boundaries import AnyOf, KeepingWhole
from transforms.chunkers.filling import Ladder
from transforms.chunkers.levels import Level
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import Packer, whole
from transforms.chunkers.pieces import Piece

_WHOLE_SENTENCE = "whole sentence"
_LADDER: Ladder = (_WHOLE_SENTENCE, "line", "clause", "word", "link")
_NO_PROSE = frozenset({"code", "table"})


class SentenceChunker(Chunker):
    """Whole sentences packed to the budget; only a sentence that is too large is cut, at lines, clauses or words.

    A stop, a blank line, an item of a list and a block of the document end a sentence; a line break alone does not,
    since prose is wrapped. Overlap is whole sentences from the end of the chunk before, and none where the last of
    them is too large. Code and tables are no prose: they stay whole, or are cut at their lines and rows.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    name: ClassVar[str] = "sentence"

    def cut(self, measured: Measured, start: int, end: int) -> Iterable[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        piece = whole(measured, start, end, self.chunk_size)
        return [piece] if piece else measured.prepared(self, self._packer).pack(start, end)

    def _packer(self, measured: Measured) -> Packer:
        levels = {_WHOLE_SENTENCE: whole_sentences}
        return Packer(
            measured,
            self.chunk_size,
            self.chunk_overlap,
            _LADDER,
            levels=levels,
            overlap_of=_WHOLE_SENTENCE,
        )


def whole_sentences(measured: Measured) -> Level:
    """Boundaries after sentences, where the layout of the text ends one too.

    Args:
        measured: The document.
    """
    text, blocks = measured.text, measured.blocks
    levels = [boundaries.paragraphs(text), boundaries.sentences(text)]
    if blocks:
        levels.insert(0, boundaries.block_edges(blocks))
    level: Level = AnyOf(levels)
    no_prose = [block for block in blocks if block.kind in _NO_PROSE]
    if not no_prose:
        return level
    return KeepingWhole(level, [block.start for block in no_prose], [block.end for block in no_prose])
