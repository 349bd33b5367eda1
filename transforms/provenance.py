"""Who made a table: the run, and the chunker with everything that shaped its output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

WriteMode = Literal["incremental", "overwrite", "append", "error_if_exists"]
# A commit that no run of the job makes.
CommitMode = WriteMode | Literal["compact"]
Cleanup = Literal["none", "incremental", "full", "scoped_full"]


def pipeline_version() -> str:
    """Version of the installed Chunkmill."""
    try:
        return version("chunkmill")
    except PackageNotFoundError:
        return "0+unknown"


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_json(value: object) -> str:
    """JSON of `value` that is the same for equal values: sorted keys, no spaces, text as it is."""
    return _CANONICAL.encode(value)


@dataclass(frozen=True, slots=True)
class ChunkerRecord:
    """A chunker as the table remembers it, a row of `chunkers/`.

    Args:
        name: Strategy.
        version: Version of its algorithm.
        hash: Fingerprint, 16 hex digits.
        settings: Canonical JSON of every setting.
        tokenizer: Name of the tokenizer.
        vocabulary_digest: SHA-256 of the tokenizer's vocabulary, in hex.
        chunk_size: Budget, in tokens.
    """

    name: str
    version: int
    hash: str
    settings: str
    tokenizer: str
    vocabulary_digest: str
    chunk_size: int


@dataclass(frozen=True, slots=True)
class Increment:
    """What an incremental run found before it began.

    Args:
        base: Number of the commit that it was planned on; 0 for a new table.
        partitions: The partitions it covers, `chunker=.../source=...`.
        retired_shards: Shards that hold rows of sources to be retired; staged files name those sources.
        sources: How many sources are `new`, `changed`, `retried`, `unchanged`, `left`, `retired`, `vanished`.
        documents: Documents of the sources that stay as they are.
    """

    base: int
    partitions: tuple[str, ...]
    retired_shards: tuple[int, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    documents: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the job, as every row of the table names it.

    Args:
        run_id: Id; the same inputs and settings have the same, so that a second try finishes the first.
        created_at: Logical time, microseconds since 1970 in UTC, the same in every row.
        mode: What happens to what the table holds already.
        shards: Shards of the table; a document belongs to one by the hash of its id.
        source_name: Name of the data set that the run reads; with its chunker, what `overwrite` replaces.
        job_id: Name the scheduler gave, if any.
        settings: Every setting of the job, without secrets.
        keep_text: Whether the ledger keeps each document's text.
        partition_by: Columns of documents, or keys of their metadata, by which chunks lie in further folders.
        increment: What an `incremental` run found before it began.
    """

    run_id: str
    created_at: int
    mode: CommitMode = "overwrite"
    shards: int = 1
    source_name: str | None = None
    job_id: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    keep_text: bool = False
    partition_by: tuple[str, ...] = ()
    increment: Increment | None = None
