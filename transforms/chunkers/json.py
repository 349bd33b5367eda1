"""The strategy `json`: members and elements of JSON as its source text has them, each with its JSON path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import ClassVar

from transforms.chunkers.base import Chunker
from transforms.chunkers.boundaries import PlaceLevel
from transforms.chunkers.filling import Ladder
from transforms.chunkers.levels import Level
from transforms.chunkers.measured import Measured
from transforms.chunkers.outlines import Path, pack_outline
from transforms.chunkers.packing import Packer
from transforms.chunkers.pieces import Piece
from transforms.parsers.json_text import outline_json, outline_json_lines
from transforms.parsers.media_types import media_type_of
from transforms.parsers.outline import Node
from transforms.records import Document, path_of

_JSON_LINES = "application/jsonl"
# No cut after the colon of a key, where a clause would end.
_STRINGS: Ladder = ("blank line", "line", "sentence", "word", "link", "escape")
# One character of a string, in one escape or, outside the basic plane, in two.
_ESCAPE = re.compile(
    r"\\(?:u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4})|[^\nu])"
)
# Of a longer path the beginning and the end are told, or ten thousand levels would make ten thousand long paths.
_LONGEST_PATH = 300
_BEGINNING = 100


def _escapes(measured: Measured) -> Level:
    """Boundaries before and after escapes, so that none is cut which fits."""
    edges = list(chain.from_iterable(found.span() for found in _ESCAPE.finditer(measured.text)))
    return PlaceLevel(edges, edges)


_OWN_LEVELS: Mapping[str, Callable[[Measured], Level]] = {"escape": _escapes}


class JsonChunker(Chunker):
    """Members and elements in the order of the source text, small neighbours together, large ones cut at their own.

    A chunk is a slice of the source text, and its heading path is the JSON path (RFC 9535) of what it begins with,
    `$.items[3].name`; a long string is cut like prose, but inside no escape, each piece with the path of its key. A
    text that is not JSON is cut like prose as a whole, which is noted. JSON lines are told by media type or file name,
    or by being JSON line by line only; a line that is not JSON is cut as the text it is, which is noted too.

    Args:
        join_records: Whether neighbouring records of JSON lines share a chunk while they fit.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    name: ClassVar[str] = "json"
    VERSION: ClassVar[int] = 2

    join_records: bool = False

    def cut(self, measured: Measured, start: int, end: int) -> Iterable[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        packer = measured.prepared(self, self._packer)
        # A part of a document that another strategy leaves to this one is no value of its own.
        nodes = self._nodes(measured) if measured.is_all(start, end) else ()
        if not nodes:
            return packer.pack(start, end)
        measured.forget_paths()
        return pack_outline(measured, nodes, (start, end), self.chunk_size, packer.pack, below=_below)

    def _packer(self, measured: Measured) -> Packer:
        return Packer(measured, self.chunk_size, self.chunk_overlap, _STRINGS, {}, _OWN_LEVELS)

    def _nodes(self, measured: Measured) -> Sequence[Node]:
        """The outline of the document; empty if it is not JSON."""
        text, is_lines = measured.text, _is_json_lines(measured.document)
        root = None if is_lines else outline_json(text)
        if root is not None:
            return (root,)
        records, bad = outline_json_lines(text, alone=not self.join_records)
        if is_lines:
            if bad:
                measured.note("line that is not JSON", bad)
            return records
        if not bad and len(records) > 1:
            measured.note("JSON lines instead of JSON")
            return records
        measured.note("not JSON")
        return ()


def _is_json_lines(document: Document) -> bool:
    return _JSON_LINES in (document.media_type, media_type_of(path_of(document)))


def _below(path: Path, step: str) -> Path:
    """A path with a further step, as one JSON path."""
    longer = "".join((*path, step))
    if len(longer) > _LONGEST_PATH:
        longer = f"{longer[:_BEGINNING]}…{longer[_BEGINNING + 1 - _LONGEST_PATH :]}"
    return (longer,)
