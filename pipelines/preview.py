"""What a chunker makes of a few documents, to look at before a run."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq

from transforms.errors import DocumentError
from transforms.packs import PackBuilder
from transforms.parsers import ParseSettings, blocks_of, parse
from transforms.provenance import Run
from transforms.records import Chunk, DeadLetter, Document, DocumentChunks, RawDocument, Source, dead_letter
from transforms.rules import Rules
from transforms.shards import write_shard
from transforms.sources import ReadSettings, match, plan, read
from transforms.storage import filesystem

_STDIN = "-"
_SHOWN_TEXT = 60
_SCRATCH = "memory://chunkmill-preview"


def documents(
    inputs: Sequence[str], read_settings: ReadSettings, parse_settings: ParseSettings
) -> Iterator[Document | DeadLetter]:
    """The documents that some inputs name, parsed.

    Args:
        inputs: Files, folders and patterns; `-` is one document from standard input.
        read_settings: How they are read.
        parse_settings: How they are parsed.

    Raises:
        ConfigError: If an input matches nothing.
    """
    for raw in _raw_documents(inputs, read_settings):
        if isinstance(raw, DeadLetter):
            yield raw
            continue
        try:
            yield parse(raw, parse_settings)
        except DocumentError as error:
            yield dead_letter(raw, error)


def _raw_documents(inputs: Sequence[str], settings: ReadSettings) -> Iterator[RawDocument | DeadLetter]:
    for name in inputs:
        if name == _STDIN:
            content, source = sys.stdin.buffer.read(), Source(uri="stdin")
            yield RawDocument("stdin", content, settings.media_type, settings.charset, source=source)
            continue
        for file in match([name], input_format=settings.input_format):
            for task in plan(file, settings):
                yield from [task] if isinstance(task, DeadLetter) else read(task, settings)


def cut(document: Document | DeadLetter, rules: Rules) -> DocumentChunks | DeadLetter:
    """The chunks of a document, or why it has none.

    Args:
        document: The document, or why it could not be parsed.
        rules: What cuts it.
    """
    if isinstance(document, DeadLetter):
        return rules.skipped(document) or document
    try:
        return rules.chunk_document(document)
    except DocumentError as error:
        return dead_letter(document, error)


def why(letter: DeadLetter) -> str:
    """Which document could not be shown, and why, in a line.

    Args:
        letter: Its dead letter.
    """
    row = "" if letter.source.row is None else f", row {letter.source.row}"
    place = f"{letter.source.uri or letter.document_id}{row}"
    message = letter.message if letter.message.startswith(place) else f"{place}: {letter.message}"
    return f"{letter.reason}: {message}"


def as_text(result: DocumentChunks, rules: Rules, shown: int) -> str:
    """Counts, and the first chunks with what they stand under.

    Args:
        result: A document and its chunks.
        rules: What cut it; the rule is told where there are any.
        shown: Chunks to show.
    """
    document, chunks = result.document, result.chunks
    name = document.source.uri or document.document_id
    blocks = Counter[str](block.kind for block in blocks_of(document))
    kinds = Counter(chunk.kind for chunk in chunks)
    tokens = sum(chunk.token_count for chunk in chunks)
    over = sum(chunk.over_budget for chunk in chunks)
    head = [
        f"{name}  ({document.media_type}, {len(document.text)} characters)",
        *([f"  chunker: {result.chunker.name}, {rules.why(document)}"] if rules.rules else []),
        *([f"  skipped: {result.reason}"] if result.status == "skipped" else []),
        f"  blocks: {_tally(blocks)}",
        f"  chunks: {_tally(kinds)}; {tokens} tokens of {result.chunker.tokenizer}; {over} over budget",
    ]
    places = {chunk.chunk_id: chunk.index for chunk in chunks}
    rows = [_line(chunk, places) for chunk in chunks[:shown]]
    more = [f"  ... {len(chunks) - shown} more"] if len(chunks) > shown else []
    return "\n".join([*head, *rows, *more])


def as_rows(result: DocumentChunks) -> list[dict[str, Any]]:
    """The rows that the chunk table would hold, without what only a run can say.

    Args:
        result: A document and its chunks.
    """
    run = Run(run_id="preview", created_at=0)
    builder = PackBuilder(run)
    packs = [pack for _, pack in (*builder.add(result), *builder.flush())]
    rows: list[dict[str, Any]] = []
    for entry in write_shard(0, packs, run, _SCRATCH):
        store, path = filesystem(f"{_SCRATCH}/{entry.staged}")
        if entry.kind == "chunks":
            with store.open(path) as file:
                rows += pq.read_table(file).to_pylist()
        store.rm_file(path)
    for row in rows:
        del row["run_id"], row["job_id"], row["created_at"]
    return rows


def as_json_lines(result: DocumentChunks, shown: int | None) -> str:
    """One chunk a line, every column of the chunk table that a single document can have.

    Args:
        result: A document and its chunks.
        shown: Chunks to show; None for all.
    """
    return "\n".join(json.dumps(row, ensure_ascii=False, default=_plain) for row in as_rows(result)[:shown])


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value)} in a chunk row")


def _tally(counts: Counter[str]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    return f"{counts.total()} ({kinds})" if kinds else "0"


def _line(chunk: Chunk, places: dict[str, int]) -> str:
    parent = f"^{places[chunk.parent_id]}" if chunk.parent_id else "-"
    spans = " ".join(f"[{start}, {end})" for start, end in chunk.spans)
    kind = chunk.kind if chunk.heading_level is None else f"{chunk.kind} {chunk.heading_level}"
    marks = " OVER BUDGET" if chunk.over_budget else ""
    text = " ".join(chunk.text.split())
    text = text if len(text) <= _SHOWN_TEXT else f"{text[: _SHOWN_TEXT - 1]}…"
    lines = f"{chunk.lines[0]}-{chunk.lines[1]}"
    return (
        f"  {chunk.index:>4} {parent:>5}  {kind:<10} {spans:<16} lines {lines:<9} "
        f"{chunk.token_count:>5} tokens{marks}  {text}"
    )
