"""From slices to chunks: ids, text, lines, bytes, headings, parents and positions, alike for every strategy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from transforms.chunkers import compiled
from transforms.chunkers.context import Context
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import Piece
from transforms.chunkers.rulers import black
from transforms.fingerprint import chunk_ids, text_digest
from transforms.provenance import ChunkerRecord
from transforms.records import Block, Chunk, Location, Span

# Kinds of blocks that make a chunk special if it holds nothing else.
_SPECIAL = frozenset({"heading", "table", "code", "caption", "title", "abstract", "figure"})
_FactsOfSlice = tuple[str, "int | None", tuple[Location, ...], tuple[str, ...]]
_PLAIN: _FactsOfSlice = ("body", None, (), ())


def finish(
    measured: Measured, pieces: Sequence[Piece], chunker: ChunkerRecord, context: Context
) -> tuple[list[Chunk], int]:
    """The chunks of a document from the slices that its strategy cut, and how many characters no slice holds.

    Args:
        measured: The document.
        pieces: The slices, starts and ends strictly ascending but for those inside the one they stand under.
        chunker: The chunker; what is over the budget of one that it uses may be within its own.
        context: What tells the context of each chunk.

    Returns:
        The chunks, and the number of non-whitespace characters outside all of them that no setting removed.
    """
    document, text = measured.document, measured.text
    strategy, size = chunker.name, chunker.chunk_size
    document_id, acl_labels, tenant_id = document.document_id, document.acl_labels, document.tenant_id
    facts_of = _Facts(measured.blocks) if measured.blocks else None
    path_at = measured.path_at if measured.has_paths else None
    context_of = context.of if context.is_told else None
    chunks: list[Chunk] = []
    seen: dict[str, int] = {}
    teller = compiled.native.Teller if compiled.native else Teller
    told, id_of = teller(text).slice, chunk_ids(document_id, chunker.hash)
    # How far chunks hold the text, and what none of them holds of it.
    held, lost = 0, 0
    before = None
    for index, piece in enumerate(pieces):
        start, end = piece.start, piece.end
        if start > held and not text[held:start].isspace():
            lost += _lost(text, held, start, measured.removed)
        content, data, byte_span, lines = told(start, end)
        if piece.derived is not None or piece.spans:
            content = piece.derived or "".join(text[low:high] for low, high in piece.spans or ())
            data = content.encode()
        digest = text_digest(data)
        ordinal = seen[digest] = seen.get(digest, -1) + 1
        kind, heading_level, locations, images = facts_of(start, end) if facts_of else _PLAIN
        chunks.append(
            Chunk(
                id_of(digest, ordinal),
                document_id,
                index,
                content,
                piece.tokens,
                piece.spans or ((start, end),),
                byte_span,
                _shared(piece, before, held) if start < held else 0,
                lines,
                piece.kind or kind,
                f"{strategy}:{piece.fallback}" if piece.fallback else strategy,
                piece.heading_level or heading_level,
                path_at(start) if path_at else (),
                None if piece.parent is None else chunks[piece.parent].chunk_id,
                context_of(start, content, piece.tokens) if context_of else None,
                locations,
                images,
                piece.derived is not None,
                piece.over_budget and piece.tokens > size,
                acl_labels,
                tenant_id,
            )
        )
        if end > held:
            held, before = end, piece
    return chunks, lost + _lost(text, held, len(text), measured.removed)


class Teller:
    """Tells of the slices of a text where they stand in bytes and lines, each from where the last one ended.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_ascii = text.isascii()
        self._line_breaks = _line_breaks if "\r" in text else str.count
        self._at, self._byte, self._line = 0, 0, 1

    def slice(self, start: int, end: int) -> tuple[str, bytes, Span, Span]:
        """Text, text in UTF-8, span in bytes, first and last line of a slice."""
        text, at, byte, line = self._text, self._at, self._byte, self._line
        if start >= at:
            byte += start - at if self._is_ascii else len(text[at:start].encode())
            line += self._line_breaks(text, "\n", at, start)
        else:
            byte -= at - start if self._is_ascii else len(text[start:at].encode())
            line -= self._line_breaks(text, "\n", start, at)
        content = text[start:end]
        data = content.encode()
        self._at, self._byte = end, byte + len(data)
        self._line = line + self._line_breaks(text, "\n", start, end)
        return content, data, (byte, self._byte), (line, self._line)


def _shared(piece: Piece, before: Piece | None, held: int) -> int:
    """Leading characters that the chunk before holds too; none of a chunk inside the one it stands under."""
    if before is None or piece.end <= held:
        return 0
    if not piece.spans and not before.spans:
        return held - piece.start
    own, theirs = (each.spans or ((each.start, each.end),) for each in (piece, before))
    pairs = ((a, b) for a in own if a[0] < held for b in theirs if b[1] > piece.start)
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in pairs)


class _Facts:
    """What the blocks of a document say of its slices: kind, heading level, locations and images.

    Args:
        blocks: The blocks, in order.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._starts = [block.start for block in blocks]
        self._ends = [block.end for block in blocks]
        # Most texts have neither.
        self._has_locations = any(block.locations for block in blocks)
        self._has_images = any(block.images for block in blocks)

    def __call__(self, start: int, end: int) -> _FactsOfSlice:
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if first >= last:
            return _PLAIN
        touched = self._blocks[first:last]
        kind = _kind(touched[0])
        if kind not in _SPECIAL or any(_kind(block) != kind for block in touched):
            kind = "body"
        locations = (
            {place: None for block in touched for place in block.locations} if self._has_locations else ()
        )
        images = {image: None for block in touched for image in block.images} if self._has_images else ()
        level = touched[0].level if kind == "heading" and len(touched) == 1 else None
        return kind, level, tuple(locations), tuple(images)


def _kind(block: Block) -> str:
    return "table" if block.kind == "table_row" else block.kind


def _line_breaks(text: str, mark: str, start: int, end: int) -> int:
    """Line breaks of any kind, counted like `str.count` counts one kind."""
    return text.count(mark, start, end) + text.count("\r", start, end) - text.count("\r\n", start, end)


def _lost(text: str, start: int, end: int, removed: Sequence[Span]) -> int:
    """Characters of a slice that are not white space, but for those that were removed."""
    lost = black(text[start:end])
    if not lost:
        return 0
    place = bisect_right(removed, (start, start))
    while place < len(removed) and removed[place][0] < end:
        lost -= black(text[slice(*removed[place])])
        place += 1
    return lost
