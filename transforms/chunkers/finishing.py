"""From slices to chunks: ids, text, lines, bytes, headings, parents and positions, alike for every strategy."""

from __future__ import annotations

from collections.abc import Sequence

from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import Piece
from transforms.fingerprint import chunk_id, text_digest
from transforms.records import Block, Chunk, Location

# Kinds of blocks that make a chunk special if it holds nothing else.
_SPECIAL = frozenset({"heading", "table", "code", "caption", "title", "abstract", "figure"})
_Facts = tuple[str, "int | None", tuple[str, ...], tuple[Location, ...], tuple[str, ...]]
_PLAIN: _Facts = ("body", None, (), (), ())


def finish(
    measured: Measured, pieces: Sequence[Piece], strategy: str, chunker_hash: str
) -> tuple[list[Chunk], int]:
    """The chunks of a document from the slices that its strategy cut, and how many characters no slice holds.

    Args:
        measured: The document.
        pieces: The slices, starts and ends strictly ascending.
        strategy: Name of the strategy.
        chunker_hash: Fingerprint of the chunker.

    Returns:
        The chunks, and the number of non-whitespace characters outside all of them.
    """
    document, text = measured.document, measured.text
    document_id, acl_labels, tenant_id = document.document_id, document.acl_labels, document.tenant_id
    one_byte = text.isascii()
    line_breaks = _line_breaks if "\r" in text else str.count
    facts_of = _Structure(measured.blocks).of if measured.blocks else _plain
    chunks: list[Chunk] = []
    seen: dict[str, int] = {}
    # How far the text is told: characters, the bytes and the line there, and what is lost.
    at, byte, line, lost = 0, 0, 1, 0
    for index, piece in enumerate(pieces):
        start, end = piece.start, piece.end
        if start > at:
            between = text[at:start]
            if not between.isspace():
                lost += _black(between)
            byte += start - at if one_byte else len(between.encode())
            line += line_breaks(text, "\n", at, start)
            overlap = 0
        elif start < at:
            byte -= at - start if one_byte else len(text[start:at].encode())
            line -= line_breaks(text, "\n", start, at)
            overlap = at - start
        else:
            overlap = 0
        content = text[start:end]
        data = content.encode()
        digest = text_digest(data)
        ordinal = seen[digest] = seen.get(digest, -1) + 1
        last_byte, last_line = byte + len(data), line + line_breaks(text, "\n", start, end)
        kind, heading_level, heading_path, locations, images = facts_of(start, end)
        chunks.append(
            Chunk(
                chunk_id(document_id, chunker_hash, digest, ordinal),
                document_id,
                index,
                content,
                piece.tokens,
                ((start, end),),
                (byte, last_byte),
                overlap,
                (line, last_line),
                piece.kind or kind,
                f"{strategy}:{piece.fallback}" if piece.fallback else strategy,
                piece.heading_level or heading_level,
                heading_path,
                None if piece.parent is None else chunks[piece.parent].chunk_id,
                locations=locations,
                images=images,
                over_budget=piece.over_budget,
                acl_labels=acl_labels,
                tenant_id=tenant_id,
            )
        )
        at, byte, line = end, last_byte, last_line
    return chunks, lost + _black(text[at:])


def _plain(start: int, end: int) -> _Facts:
    """What is known of a slice of a text without blocks."""
    return _PLAIN


class _Structure:
    """What the blocks of a document say of slices with ascending starts.

    Args:
        blocks: The blocks, in order.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._first = 0
        self._coming = (block for block in blocks if block.kind == "heading")
        self._next = next(self._coming, None)
        self._open: list[tuple[int, str]] = []
        self._path: tuple[str, ...] = ()

    def of(self, start: int, end: int) -> _Facts:
        """Kind, heading level, heading path, locations and images of a slice."""
        blocks, first = self._blocks, self._first
        while first < len(blocks) and blocks[first].end <= start:
            first += 1
        last = self._first = first
        while last < len(blocks) and blocks[last].start < end:
            last += 1
        touched = blocks[first:last]
        kinds = {"table" if block.kind == "table_row" else block.kind for block in touched}
        kind = next(iter(kinds)) if len(kinds) == 1 and kinds <= _SPECIAL else "body"
        return (
            kind,
            touched[0].level if kind == "heading" and len(touched) == 1 else None,
            self._path_at(start),
            tuple(dict.fromkeys(location for block in touched for location in block.locations)),
            tuple(image for block in touched for image in block.images),
        )

    def _path_at(self, position: int) -> tuple[str, ...]:
        """Titles of the headings in force."""
        while self._next is not None and self._next.start <= position:
            level, title = self._next.level or 1, self._next.title or ""
            while self._open and self._open[-1][0] >= level:
                self._open.pop()
            self._open.append((level, title))
            self._path = tuple(title for _, title in self._open)
            self._next = next(self._coming, None)
        return self._path


def _line_breaks(text: str, mark: str, start: int, end: int) -> int:
    """Line breaks of any kind, counted like `str.count` counts one kind."""
    return text.count(mark, start, end) + text.count("\r", start, end) - text.count("\r\n", start, end)


def _black(text: str) -> int:
    """Characters that are not white space."""
    return 0 if not text or text.isspace() else sum(map(len, text.split()))
