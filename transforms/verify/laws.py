"""The laws, each for the chunks that one chunker made of one document."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from transforms.fingerprint import chunk_id, text_digest
from transforms.provenance import ChunkerRecord
from transforms.tokenizers import Tokenizer
from transforms.verify.report import Fault
from transforms.verify.rows import Chunk, Entry, Letter, fault_of

_LINE_BREAK = re.compile("\r\n?|\n")


def index_faults(chunks: Sequence[Chunk]) -> Iterator[Fault]:
    """Indexes that leave a gap, and counts that are none."""
    # What one lost row does to all that follow is told once.
    for index, chunk in enumerate(chunks):
        if chunk.chunk_index != index:
            yield fault_of(chunk, "chunk_index", f"has index {chunk.chunk_index} in the place of {index}")
            break
    for chunk in chunks:
        if chunk.chunk_count != len(chunks):
            yield fault_of(chunk, "chunk_count", f"says {chunk.chunk_count} chunks, there are {len(chunks)}")
            break


def id_faults(chunks: Sequence[Chunk], record: ChunkerRecord | None) -> Iterator[Fault]:
    """Ids that do not follow from the text, come twice, or name no parent."""
    # Other documents and chunkers cannot have an id that follows from these: unique here is unique at all.
    seen: set[str] = set()
    ordinals: Counter[str] = Counter()
    for chunk in chunks:
        chunker_hash = record.hash if record else chunk.chunker_hash
        due = chunk_id(
            chunk.document_id, chunker_hash, text_digest(chunk.text.encode()), ordinals[chunk.text]
        )
        ordinals[chunk.text] += 1
        if chunk.chunk_id in seen:
            yield fault_of(chunk, "unique", f"an earlier chunk has the id {chunk.chunk_id}")
        elif chunk.chunk_id != due:
            yield fault_of(chunk, "chunk_id", f"the id is {chunk.chunk_id}; {due} follows from the text")
        if chunk.parent_id is not None and chunk.parent_id not in seen:
            yield fault_of(chunk, "parent", f"no earlier chunk of the document is {chunk.parent_id}")
        seen.add(chunk.chunk_id)


def hash_faults(rows: Iterable[Chunk | Entry], record: ChunkerRecord) -> Iterator[Fault]:
    """Rows of another chunker than that of their partition."""
    for row in rows:
        if row.chunker_hash != record.hash:
            yield fault_of(row, "chunker_hash", f"is {row.chunker_hash}, the partition's is {record.hash}")


def token_faults(
    chunks: Sequence[Chunk], record: ChunkerRecord, counter: Tokenizer | None
) -> Iterator[Fault]:
    """Counts of tokens that are not true, and chunks over the budget."""
    told = [chunk.token_count for chunk in chunks]
    counted = counter.count_many([chunk.text for chunk in chunks]) if counter else told
    for chunk, tokens in zip(chunks, counted, strict=True):
        if tokens != chunk.token_count:
            yield fault_of(chunk, "token_count", f"says {chunk.token_count} tokens, there are {tokens}")
        if chunk.token_count > record.chunk_size and not chunk.over_budget:
            message = f"{chunk.token_count} tokens are more than {record.chunk_size}, and it is not marked"
            yield fault_of(chunk, "budget", message)


def span_faults(chunks: Sequence[Chunk], entry: Entry | None) -> Iterator[Fault]:
    """Spans, overlaps and lines that no document can have."""
    before = None
    hulls: dict[str, tuple[int, int]] = {}
    for chunk in chunks:
        if not chunk.text.strip():
            yield fault_of(chunk, "blank", "the text is blank")
        start, end = hulls[chunk.chunk_id] = (chunk.start_char, chunk.end_char)
        around = hulls.get(chunk.parent_id) if chunk.parent_id else None
        # The children of a chunk are parts of it: order and overlap are those of the chunks around them.
        is_child = around is not None and around[0] <= start and end <= around[1]
        neighbour = None if is_child else before
        if message := _span_message(chunk, neighbour, entry):
            yield fault_of(chunk, "span", message)
        if not chunk.is_derived and not (neighbour and neighbour.is_derived):
            shared = _shared(neighbour, chunk) if neighbour else 0
            if chunk.overlap_chars != shared:
                message = f"says {chunk.overlap_chars} characters, the chunk before has {shared} of them"
                yield fault_of(chunk, "overlap", message)
        first, last = (neighbour.line_start, neighbour.line_end) if neighbour else (1, 1)
        if not (first <= chunk.line_start <= chunk.line_end >= last):
            message = f"lines {chunk.line_start} to {chunk.line_end} follow lines {first} to {last}"
            yield fault_of(chunk, "lines", message)
        before = before if is_child else chunk


def _span_message(chunk: Chunk, before: Chunk | None, entry: Entry | None) -> str | None:
    """What is wrong with the span of a chunk, without the text of the document."""
    edges = [edge for piece in chunk.pieces for edge in piece]
    hull = (chunk.start_char, chunk.end_char, chunk.start_byte, chunk.end_byte)
    if edges != sorted(edges) or any(start >= end for start, end in chunk.pieces):
        return f"the spans {chunk.pieces} are empty or out of order"
    if [*edges[:1], *edges[-1:]] != [*hull[:2]]:
        return f"the spans {chunk.pieces} do not reach from {hull[0]} to {hull[1]}"
    if hull[0] < 0 or not 0 <= hull[2] < hull[3]:
        return f"characters {hull[0]} to {hull[1]}, bytes {hull[2]} to {hull[3]} are none of a document"
    if entry and (hull[1] > (entry.char_count or 0) or hull[3] > (entry.byte_count or 0)):
        size = f"{entry.char_count} characters, {entry.byte_count} bytes"
        return f"ends at character {hull[1]}, byte {hull[3]}; the document has {size}"
    if before:
        other = (before.start_char, before.end_char, before.start_byte, before.end_byte)
        if any(ours <= theirs for ours, theirs in zip(hull, other, strict=True)):
            return f"the span {hull} does not come after {other}"
    if not chunk.is_derived:
        held = (len(chunk.text), len(chunk.text.encode()))
        chars = sum(end - start for start, end in chunk.pieces)
        size_of = (chars, hull[3] - hull[2] if chunk.spans is None else held[1])
        if size_of != held:
            return f"the span has {size_of} characters and bytes, the text {held}"
    return None


def _shared(before: Chunk, chunk: Chunk) -> int:
    """Characters that lie in spans of both."""
    pairs = ((held, own) for held in before.pieces for own in chunk.pieces)
    return sum(max(0, min(held[1], own[1]) - max(held[0], own[0])) for held, own in pairs)


def ledger_faults(chunks: Sequence[Chunk], standing: Sequence[Entry]) -> Iterator[Fault]:
    """Counts and states of the ledger that are not those of the chunks."""
    for chunk in [] if standing else chunks[:1]:
        yield fault_of(chunk, "ledger", f"{len(chunks)} chunks of a document that the ledger does not list")
    for entry in standing[1:]:
        yield fault_of(entry, "ledger", f"is listed {len(standing)} times for one chunker")
    for entry in standing[:1]:
        found = (len(chunks), sum(c.token_count for c in chunks), sum(c.over_budget for c in chunks))
        told = (entry.chunk_count, entry.token_count, entry.over_budget_count)
        if found != told:
            names = "(chunks, tokens, chunks over the budget)"
            yield fault_of(entry, "ledger", f"says {told} {names}, there are {found}")
        elif (entry.status == "ok") != bool(chunks):
            yield fault_of(entry, "ledger", f"has status {entry.status} and {len(chunks)} chunks")
        if entry.lost_chars:
            yield fault_of(entry, "coverage", f"says that {entry.lost_chars} characters are in no chunk")


def deleted_faults(entries: Sequence[Entry]) -> Iterator[Fault]:
    """Documents that are deleted and yet there."""
    # What left one source may stand in another: no run writes the ledger of a source that it does not cover.
    listed = Counter(entry.source_name for entry in entries if entry.status != "failed")
    for entry in entries:
        if entry.status == "deleted" and (listed[entry.source_name] > 1 or entry.chunk_count):
            yield fault_of(
                entry, "ledger", "says that a document is deleted that is listed again or has chunks"
            )


def letter_faults(entries: Sequence[Entry], letters: Sequence[Letter]) -> Iterator[Fault]:
    """Failed documents without a dead letter, and the reverse."""
    failed = [entry for entry in entries if entry.status == "failed"]
    for rows, others, lack in (
        (failed, letters, "dead letter"),
        (letters, failed, "failed row in the ledger"),
    ):
        alone = Counter(row.reason for row in rows) - Counter(row.reason for row in others)
        for row in rows:
            if alone[row.reason] > 0:
                alone[row.reason] -= 1
                yield fault_of(row, "dead_letter", f"failed with {row.reason}, and there is no {lack} for it")


def slice_faults(chunks: Sequence[Chunk], text: str) -> Iterator[Fault]:
    """Chunks that are not what the text of the document holds at their spans."""
    breaks = array("q", (found.end() for found in _LINE_BREAK.finditer(text)))
    at = byte = 0
    for chunk in chunks:
        start, end = chunk.start_char, chunk.end_char
        if not chunk.is_derived and chunk.text != "".join(text[s:e] for s, e in chunk.pieces):
            yield fault_of(chunk, "slice", f"the text is not what the document holds at {chunk.pieces}")
        told = (chunk.line_start, chunk.line_end)
        lines = (bisect_right(breaks, start) + 1, bisect_right(breaks, end - 1) + 1)
        if lines != told:
            yield fault_of(chunk, "lines", f"says lines {told}, they are {lines}")
        if start < at:
            continue  # out of order, which is told
        byte += len(text[at:start].encode())
        at = start
        told = (chunk.start_byte, chunk.end_byte)
        span = (byte, byte + len(text[start:end].encode()))
        if span != told:
            yield fault_of(chunk, "byte_span", f"says bytes {told}, they are {span}")


def text_faults(chunks: Sequence[Chunk], entry: Entry, text: str) -> Iterator[Fault]:
    """Text that is in no chunk, and counts that are not those of the text."""
    size, told = (len(text), len(text.encode())), (entry.char_count, entry.byte_count)
    if size != told:
        yield fault_of(entry, "ledger", f"says {told} characters and bytes, the text has {size}")
    if entry.status == "skipped":
        return
    lost: list[str] = []
    covered = 0
    for start, end in sorted([*(piece for c in chunks for piece in c.pieces), (len(text), len(text))]):
        if start > covered:
            lost += text[covered:start].split()
        covered = max(covered, end)
    chars = sum(map(len, lost))
    told_chars = (entry.lost_chars or 0) + (entry.removed_chars or 0)
    if chars != told_chars:
        message = f"{chars} characters are in no chunk, the ledger says {told_chars}"
        yield fault_of(entry, "coverage", f"{message}: {' '.join(lost[:3])[:60]!r}")
