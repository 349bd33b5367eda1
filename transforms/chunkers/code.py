"""The strategy `code`: imports, functions and classes of a program as its syntax tree has them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import ClassVar

from pydantic import Field, field_validator

from transforms.chunkers.base import Chunker
from transforms.chunkers.measured import Measured
from transforms.chunkers.outlines import pack_outline
from transforms.chunkers.packing import CODE, Packer, Piece
from transforms.parsers.code import outline
from transforms.parsers.languages import LANGUAGES, language_of


class CodeChunker(Chunker):
    """Each function and class a chunk with its decorators and the comment above; what lies between in its place.

    A class that is too large is cut at its methods, which stand under its first chunk; a function that is too large
    between its lines. Of a program that does not parse, what does parse is cut so.

    Args:
        language: Language of every document; None to go by its file name, else by its media type. A document in
            none of the languages is cut between its lines.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    name: ClassVar[str] = "code"
    VERSION: ClassVar[int] = 2

    language: str | None = Field(default=None)

    @field_validator("language", mode="after")
    @classmethod
    def _known_language(cls, value: str | None) -> str | None:
        if value is not None and value not in LANGUAGES:
            raise ValueError(f"{value!r} is none of the languages {', '.join(LANGUAGES)}")
        return value

    def cut(self, measured: Measured, start: int, end: int) -> Iterable[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        document = measured.document
        language = self.language or language_of(document.media_type, document.source.uri)
        packer = Packer(measured, self.chunk_size, self.chunk_overlap, CODE, {})
        if language is None:
            measured.note("no known programming language")
            return packer.pack(start, end)
        measured.forget_paths()
        nodes = outline(document.text, language)
        module = PurePosixPath(document.source.uri).stem
        path = (module,) if module else ()
        return pack_outline(measured, nodes, (start, end), self.chunk_size, packer.pack, path)
