"""The strategy `paper`: the abstract of a paper whole, its sections each by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from transforms.chunkers.base import Chunker, nested_chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.chunkers.whole import uncut
from transforms.records import Block, Span

_ABSTRACT_HEADINGS = (
    *("abstract", "summary", "zusammenfassung", "kurzfassung", "résumé", "resumen", "resumo", "riassunto"),
    *("sommario", "samenvatting", "sammanfattning", "sammendrag", "resumé", "tiivistelmä", "streszczenie"),
    *(
        "abstrakt",
        "аннотация",
        "реферат",
        "анотація",
        "özet",
        "περίληψη",
        "摘要",
        "概要",
        "要旨",
        "抄録",
        "초록",
    ),
    *("요약", "الملخص", "ملخص", "چکیده", "תקציר", "सारांश", "บทคัดย่อ", "tóm tắt", "abstrak"),
)
_NUMBERING = " \t\r\n#*_0123456789.:：—–-"


class PaperChunker(Chunker):
    """The abstract as one chunk that is never cut, marked if it is over the budget; each section by itself.

    The abstract is the block of that kind, else the section under a heading that says so. The title, from the block
    of that kind or else the first heading of level 1, stands for the document's where it has none. A caption stays
    with its figure or table while both fit.

    Args:
        abstract_headings: What a heading over an abstract may say, in any language; case and numbering do not
            matter.
        split_level: Deepest level of heading that starts a section, 1 to 6.
        sections: What cuts a section: the name of a strategy, a table of its settings with its `name`, or a
            chunker. It takes size, overlap, tokenizer and engine from here unless it has its own.

    Raises:
        ConfigError: If a setting is unknown or refused, or the chunks of sections could be larger.
    """

    name: ClassVar[str] = "paper"

    abstract_headings: tuple[str, ...] = _ABSTRACT_HEADINGS
    split_level: int = Field(default=2, ge=1, le=6)
    sections: Chunker = Field(default="delimiter")  # type: ignore[assignment]  # the validator makes it one

    @field_validator("abstract_headings", mode="after")
    @classmethod
    def _plain(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted({_said(heading) for heading in value}))

    @field_validator("sections", mode="before")
    @classmethod
    def _make_sections(cls, value: object, info: ValidationInfo) -> object:
        return nested_chunker(value, info)

    def counting(self) -> dict[str, Any]:
        """Every setting as it counts: overlap is that of the chunker within, which has settings of its own."""
        return {**self.settings(), "chunk_overlap": 0}

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        measured.bound = list(_captioned(measured.blocks))
        abstract = self._abstract(measured, start, end)
        if abstract is None:
            yield from self._cut_sections(measured, start, end)
            return
        yield from self._cut_sections(measured, start, abstract[0])
        yield from uncut(measured, *abstract, self.chunk_size, "abstract")
        yield from self._cut_sections(measured, abstract[1], end)

    def title_in(self, measured: Measured) -> str | None:
        """The text of the first title, else of the first heading of level 1."""
        block = next((block for block in measured.blocks if block.kind == "title"), None)
        if block:
            return " ".join(measured.text[block.start : block.end].split())
        headings = measured.headings(0, len(measured.text))
        return next((heading.title for heading in headings if heading.level == 1), None)

    def _abstract(self, measured: Measured, start: int, end: int) -> Span | None:
        blocks = [block for block in measured.blocks if start <= block.start and block.end <= end]
        for place, block in enumerate(blocks):
            if block.kind == "abstract":
                last = place
                while last + 1 < len(blocks) and blocks[last + 1].kind == "abstract":
                    last += 1
                return block.start, blocks[last].end
        headings = measured.headings(start, end)
        for place, heading in enumerate(headings):
            if _said(heading.title or "") in self.abstract_headings:
                level = heading.level or 1
                after = (other.start for other in headings[place + 1 :] if (other.level or 1) <= level)
                return heading.start, next(after, end)
        return None

    def _cut_sections(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        headings = measured.headings(start, end)
        starts = [
            heading.start
            for heading in headings
            if (heading.level or 1) <= self.split_level and heading.start > start
        ]
        for section in pairwise([start, *starts, end]):
            if section[0] < section[1]:
                for piece in self.sections.cut(measured, *section):
                    piece.fallback = piece.fallback or self.sections.name
                    yield piece


def _said(heading: str) -> str:
    """What a heading says, without numbering and case."""
    return heading.strip(_NUMBERING).casefold()


def _captioned(blocks: Sequence[Block]) -> Iterator[Span]:
    """Each figure or table with its caption: the one that follows if there is one, else the one before."""
    taken = -1
    for place, block in enumerate(blocks):
        if block.kind != "caption":
            continue
        for other in (place - 1, place + 1):
            if taken < other < len(blocks) and blocks[other].kind in ("figure", "table") and other >= 0:
                first, last = sorted((place, other))
                yield blocks[first].start, blocks[last].end
                taken = other if other > place else place
                break
