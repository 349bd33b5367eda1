"""The strategy `code`: imports, functions and classes of a program as its syntax tree has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import ClassVar

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from transforms.chunkers.base import Chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.outlines import pack_outline
from transforms.chunkers.packing import CODE, Packer
from transforms.chunkers.pieces import Piece
from transforms.errors import ConfigError
from transforms.parsers.code import outline
from transforms.parsers.languages import LANGUAGES, language_of
from transforms.records import path_of


class CodeChunker(Chunker):
    """Each function and class a chunk with its decorators and the comment above; what lies between in its place.

    A class that is too large is cut at its methods, which stand under its first chunk; a function that is too large
    between its lines. Of a program that does not parse, what does parse is cut so. A document in none of the
    languages is cut between its lines, and so is a part of a document that another strategy leaves to this one.

    Args:
        language: Language of every document; None to go by its file name, else by its media type.
        max_chunk_lines: Most lines of a chunk; 0 for no limit but `chunk_size`.
        overlap_lines: Most whole lines that neighbours share where something is cut between its lines, in place of
            `chunk_overlap`; they take at most half of `chunk_size`.

    Raises:
        ConfigError: If a setting is unknown or refused, or both `chunk_overlap` and `overlap_lines` are given.
    """

    name: ClassVar[str] = "code"
    overlap_settings: ClassVar[tuple[str, ...]] = ("chunk_overlap", "overlap_lines")

    language: str | None = Field(default=None)
    max_chunk_lines: int = Field(default=0, ge=0)
    overlap_lines: int = Field(default=0, ge=0)

    @field_validator("language", mode="after")
    @classmethod
    def _known_language(cls, value: str | None) -> str | None:
        if value is not None and value not in LANGUAGES:
            raise ValueError(f"{value!r} is none of the languages {', '.join(LANGUAGES)}")
        return value

    @model_validator(mode="after")
    def _windows_advance(self) -> Self:
        if 0 < self.max_chunk_lines <= self.overlap_lines:
            raise ConfigError(
                "overlap_lines",
                self.overlap_lines,
                f"must be less than max_chunk_lines={self.max_chunk_lines}",
            )
        return self

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        packer = measured.prepared(self, self._packer)
        language = self._language(measured)
        with measured.at_most_lines(self.max_chunk_lines):
            if language is None or not measured.is_all(start, end):
                yield from packer.pack(start, end)
                return
            document = measured.document
            measured.forget_paths()
            module = PurePosixPath(path_of(document)).stem
            nodes, path = outline(document.text, language), (module,) if module else ()
            for piece in pack_outline(measured, nodes, (start, end), self.chunk_size, packer.pack, path):
                piece.kind = "code"
                yield piece

    def _language(self, measured: Measured) -> str | None:
        document = measured.document
        language = self.language or language_of(document.media_type, path_of(document))
        if language is None:
            measured.notes["no known programming language"] = 1
        return language

    def _packer(self, measured: Measured) -> Packer:
        if self.overlap_lines:
            return _LinePacker(measured, self.chunk_size, self.overlap_lines)
        return Packer(measured, self.chunk_size, self.chunk_overlap, CODE, {})


class _LinePacker(Packer):
    """Packs lines, with whole lines as overlap.

    Args:
        measured: The document.
        size: Budget of a chunk, in tokens.
        lines: Most lines a chunk shares with the one before.
    """

    def __init__(self, measured: Measured, size: int, lines: int) -> None:
        super().__init__(measured, size, size // 2, CODE, {}, overlap_of="line")
        self._lines = lines

    def lead(self, previous: Piece, new: int) -> int:
        """Where a chunk after `previous` starts: at the first of the lines that fit into the overlap."""
        lead = super().lead(previous, new)
        first = self._measured.line_start(previous.end, self._lines - 1)
        return lead if first <= lead else self._measured.begin(first, new)
