"""From slices to chunks: ids, text, lines, bytes, headings, parents and positions, alike for every strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import Piece
from transforms.fingerprint import chunk_id
from transforms.records import Block, Chunk, Location

# Kinds of blocks that make a chunk special if it holds nothing else.
_SPECIAL = frozenset({"heading", "table", "code", "caption", "title", "abstract", "figure"})


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
    one_byte, returns = text.isascii(), "\r" in text
    chunks: list[Chunk] = []
    seen: dict[str, int] = {}
    touched = _Touched(measured.blocks) if measured.blocks else None
    headings = _Headings(measured.blocks) if measured.blocks else None
    line, byte, at, covered, lost = 1, 0, 0, 0, 0
    for piece in pieces:
        start, end = piece.start, piece.end
        content = text[start:end]
        data = content.encode()
        line += _line_breaks(text[at:start], returns)
        byte = start if one_byte else byte + len(text[at:start].encode())
        at = start
        if start > covered and not text[covered:start].isspace():
            lost += _black(text[covered:start])
        blocks = touched.by(start, end) if touched else ()
        ordinal = seen[content] = seen.get(content, -1) + 1
        chunks.append(
            Chunk(
                chunk_id=chunk_id(document.document_id, chunker_hash, data, ordinal),
                document_id=document.document_id,
                index=len(chunks),
                text=content,
                token_count=piece.tokens,
                spans=((start, end),),
                byte_span=(byte, byte + len(data)),
                overlap=max(0, covered - start),
                lines=(line, line + _line_breaks(content, returns)),
                kind=piece.kind or _kind(blocks),
                strategy=f"{strategy}:{piece.fallback}" if piece.fallback else strategy,
                heading_level=piece.heading_level or _heading_level(blocks),
                heading_path=headings.path(start) if headings else (),
                parent_id=None if piece.parent is None else chunks[piece.parent].chunk_id,
                locations=_locations(blocks),
                images=tuple(image for block in blocks for image in block.images),
                over_budget=piece.over_budget,
                acl_labels=document.acl_labels,
                tenant_id=document.tenant_id,
            )
        )
        covered = end
    return chunks, lost + _black(text[covered:])


class _Touched:
    """The blocks that slices touch, for slices with ascending starts."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._first = 0

    def by(self, start: int, end: int) -> Sequence[Block]:
        blocks = self._blocks
        first = self._first
        while first < len(blocks) and blocks[first].end <= start:
            first += 1
        last = self._first = first
        while last < len(blocks) and blocks[last].start < end:
            last += 1
        return blocks[first:last]


class _Headings:
    """The headings in force at ascending places."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._coming: Iterator[Block] = (block for block in blocks if block.kind == "heading")
        self._next = next(self._coming, None)
        self._open: list[tuple[int, str]] = []
        self._path: tuple[str, ...] = ()

    def path(self, position: int) -> tuple[str, ...]:
        while self._next is not None and self._next.start <= position:
            level, title = self._next.level or 1, self._next.title or ""
            while self._open and self._open[-1][0] >= level:
                self._open.pop()
            self._open.append((level, title))
            self._path = tuple(title for _, title in self._open)
            self._next = next(self._coming, None)
        return self._path


def _kind(blocks: Sequence[Block]) -> str:
    kinds = {"table" if block.kind == "table_row" else block.kind for block in blocks}
    return next(iter(kinds)) if len(kinds) == 1 and kinds <= _SPECIAL else "body"


def _heading_level(blocks: Sequence[Block]) -> int | None:
    return blocks[0].level if blocks and blocks[0].kind == "heading" and len(blocks) == 1 else None


def _locations(blocks: Sequence[Block]) -> tuple[Location, ...]:
    return tuple(dict.fromkeys(location for block in blocks for location in block.locations))


def _line_breaks(text: str, returns: bool) -> int:
    breaks = text.count("\n")
    return breaks + text.count("\r") - text.count("\r\n") if returns else breaks


def _black(text: str) -> int:
    return sum(map(len, text.split()))
