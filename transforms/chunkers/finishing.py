"""From slices to chunks: ids, text, lines, bytes, headings, parents and positions, alike for every strategy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from hashlib import sha256

from transforms.chunkers import compiled
from transforms.chunkers.context import Context
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.chunkers.rulers import black
from transforms.fingerprint import chunk_ids
from transforms.provenance import ChunkerRecord
from transforms.records import Chunk, Location, Span

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
    chunks, gaps = _chunks_of(measured, pieces, chunker, context)
    lost = sum(_lost(measured.text, start, end, measured.removed) for start, end in gaps) if gaps else 0
    return chunks, lost


def chunks_of(
    measured: Measured, pieces: Sequence[Piece], chunker: ChunkerRecord, context: Context
) -> tuple[list[Chunk], list[Span]]:
    """The chunks of a document, and what of its text lies in none of them and is not blank.

    Where a chunk stands in bytes and lines is told from where the one before it ended, so that all of them cost about
    what the text does.

    Args:
        measured: The document.
        pieces: The slices that become chunks.
        chunker: The chunker.
        context: What tells the context of each chunk.
    """
    document, text = measured.document, measured.text
    strategy, size = chunker.name, chunker.chunk_size
    id_of = chunk_ids(document.document_id, chunker.hash)
    line_breaks = _line_breaks if "\r" in text else str.count
    chunks: list[Chunk] = []
    gaps: list[Span] = []
    # A place in the text, with the bytes before it and its line.
    at, byte, line = 0, 0, 1
    # How far chunks hold the text, and the one that does.
    held, before = 0, None
    for index, piece in enumerate(pieces):
        start, end = piece.start, piece.end
        if start >= at:
            byte += len(text[at:start].encode())
            line += line_breaks(text, "\n", at, start)
        else:
            byte -= len(text[start:at].encode())
            line -= line_breaks(text, "\n", start, at)
        content = text[start:end]
        data = content.encode()
        at, after, last = end, byte + len(data), line + line_breaks(text, "\n", start, end)
        if piece.derived is not None or piece.spans:
            content = piece.derived or "".join(text[low:high] for low, high in piece.spans or ())
            data = content.encode()
        if start > held and not text[held:start].isspace():
            gaps.append((held, start))
        kind, heading_level, locations, images = facts_of(measured, start, end)
        chunks.append(
            Chunk(
                id_of(data),
                document.document_id,
                index,
                content,
                piece.tokens,
                piece.spans or ((start, end),),
                (byte, after),
                shared(piece, before, held) if start < held else 0,
                (line, last),
                piece.kind or kind,
                f"{strategy}:{piece.fallback}" if piece.fallback else strategy,
                piece.heading_level or heading_level,
                measured.path_at(start),
                None if piece.parent is None else chunks[piece.parent].chunk_id,
                context.of(start, content, piece.tokens) if context.is_told else None,
                locations,
                images,
                piece.derived is not None,
                piece.over_budget and piece.tokens > size,
                document.acl_labels,
                document.tenant_id,
            )
        )
        byte, line = after, last
        if end > held:
            held, before = end, piece
    if held < len(text) and not text[held:].isspace():
        gaps.append((held, len(text)))
    return chunks, gaps


def shared(piece: Piece, before: Piece | None, held: int) -> int:
    """Leading characters that the chunk before holds too; none of a chunk inside the one it stands under."""
    if before is None or piece.end <= held:
        return 0
    if not piece.spans and not before.spans:
        return held - piece.start
    own, theirs = (each.spans or ((each.start, each.end),) for each in (piece, before))
    pairs = ((a, b) for a in own if a[0] < held for b in theirs if b[1] > piece.start)
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in pairs)


def facts_of(measured: Measured, start: int, end: int) -> _FactsOfSlice:
    """What the blocks of a document say of a slice: kind, heading level, locations and images.

    Args:
        measured: The document.
        start: First character of the slice, in code points.
        end: Its end.
    """
    first, last = bisect_right(measured.block_ends, start), bisect_left(measured.block_starts, end)
    if first >= last:
        return _PLAIN
    kinds = {"table" if kind == "table_row" else kind for kind in measured.block_kinds[first:last]}
    kind = kinds.pop() if len(kinds) == 1 else "body"
    if kind not in _SPECIAL:
        kind = "body"
    touched = measured.blocks[first:last]
    level = touched[0].level if kind == "heading" and len(touched) == 1 else None
    locations = dict.fromkeys(location for block in touched for location in block.locations)
    images = dict.fromkeys(image for block in touched for image in block.images)
    return kind, level, tuple(locations), tuple(images)


_chunks_of = (
    partial(compiled.native.chunks_of, Chunk, shared, facts_of, _PLAIN, _SPECIAL, sha256())
    if compiled.native
    else chunks_of
)


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
