"""From slices to chunks: ids, text, lines, bytes, headings, parents and positions, alike for every strategy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial

from transforms.chunkers import compiled
from transforms.chunkers.context import Context
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.chunkers.rulers import black
from transforms.fingerprint import chunk_ids
from transforms.provenance import ChunkerRecord
from transforms.records import Chunk, Document, Location, Span

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
    chunks, gaps = _chunks_of(
        document,
        pieces,
        chunker,
        chunk_ids(document.document_id, chunker.hash),
        _Facts(measured) if measured.blocks else None,
        measured.path_at if measured.has_paths else None,
        context.of if context.is_told else None,
    )
    return chunks, sum(_lost(text, start, end, measured.removed) for start, end in gaps)


def chunks_of(
    document: Document,
    pieces: Sequence[Piece],
    chunker: ChunkerRecord,
    id_of: Callable[[bytes], str],
    facts_of: Callable[[int, int], _FactsOfSlice] | None,
    path_at: Callable[[int], tuple[str, ...]] | None,
    context_of: Callable[[int, str, int], str | None] | None,
) -> tuple[list[Chunk], list[Span]]:
    """The chunks of a document, and what of its text lies in none of them and is not blank.

    Where a chunk stands in bytes and lines is told from where the one before it ended, so that all of them cost about
    what the text does.

    Args:
        document: The document.
        pieces: The slices that become chunks.
        chunker: The chunker.
        id_of: Gives the id of the next chunk, from its text in UTF-8.
        facts_of: What the blocks of a slice say of it, if the document has blocks.
        path_at: The path in force at a position, if there is any.
        context_of: The context of a chunk, from its start, text and tokens, if any has one.
    """
    text, strategy, size = document.text, chunker.name, chunker.chunk_size
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
        kind, heading_level, locations, images = facts_of(start, end) if facts_of else _PLAIN
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
                path_at(start) if path_at else (),
                None if piece.parent is None else chunks[piece.parent].chunk_id,
                context_of(start, content, piece.tokens) if context_of else None,
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


_chunks_of = partial(compiled.native.chunks_of, Chunk, _PLAIN, shared) if compiled.native else chunks_of


class _Facts:
    """What the blocks of a document say of its slices: kind, heading level, locations and images.

    Args:
        measured: The document.
    """

    def __init__(self, measured: Measured) -> None:
        self._blocks = measured.blocks
        self._starts, self._ends = measured.block_starts, measured.block_ends
        kinds = measured.block_kinds
        if "table_row" in kinds:
            kinds = ["table" if kind == "table_row" else kind for kind in kinds]
        self._kinds = kinds
        self._has_places = any(block.locations or block.images for block in measured.blocks)

    def __call__(self, start: int, end: int) -> _FactsOfSlice:
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if first >= last:
            return _PLAIN
        kind = self._kinds[first]
        if kind not in _SPECIAL or self._kinds[first:last].count(kind) < last - first:
            kind = "body"
        level = self._blocks[first].level if kind == "heading" and last - first == 1 else None
        if not self._has_places:
            return kind, level, (), ()
        touched = self._blocks[first:last]
        locations = dict.fromkeys(location for block in touched for location in block.locations)
        images = dict.fromkeys(image for block in touched for image in block.images)
        return kind, level, tuple(locations), tuple(images)


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
