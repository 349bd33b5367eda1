"""Names of the files and folders below an output, and what is known of a file."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Literal

import fsspec

from transforms.partitions import MISSING, folder_key
from transforms.provenance import ChunkerRecord

Kind = Literal["chunks", "documents", "dead_letters", "deletes", "changes"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A data file, staged or in the table.

    Args:
        kind: The table it belongs to.
        path: Its final path, relative to the output.
        staged: Where it was written, relative to the output.
        rows: Rows.
        bytes: Size.
        sha256: Digest of the bytes, in hex.
        min_document_id: First document id; None without rows.
        max_document_id: Last document id.
        documents: Documents that it tells of.
        tokens: Tokens of its rows.
        chunker: Chunker of its partition.
        tally: Counts for the run report, by group and name.
    """

    kind: Kind
    path: str
    staged: str
    rows: int
    bytes: int
    sha256: str
    min_document_id: str | None
    max_document_id: str | None
    documents: int
    tokens: int
    chunker: ChunkerRecord | None = None
    tally: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def partition(self) -> str:
        """What `overwrite` replaces as one: `chunker=.../source=...`, whatever folders lie below it."""
        return "/".join(self.path.split("/")[1:3])

    @property
    def folder(self) -> str:
        """Folder of the file."""
        return self.path.rpartition("/")[0]

    @property
    def shard(self) -> int:
        """Shard of the file."""
        return int(self.path.rpartition("/part-")[2].partition("-")[0])

    @property
    def tells_of_a_commit(self) -> bool:
        """Whether the file says what one commit did, so that no later one replaces it."""
        return self.kind in ("deletes", "changes")


# What one reader or another takes for a truth value, a number, a date or nothing.
_GUESSED = frozenset("true false null none nan inf infinity epoch".split())


def slug(value: str | None) -> str:
    """`value` as a partition value that every reader gives back as the same string.

    A plain lower-case name stays as it is. Anything else is spelled in plain letters and ends in 12 digits of
    its hash, with at most 63 characters in all.
    """
    if not value:
        return MISSING
    is_plain = re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", value) and value not in _GUESSED
    if is_plain and not re.search(r"-[0-9a-f]{12}$", value):
        return value
    letters = unicodedata.normalize("NFKD", value[:200]).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9_]+", "-", letters).strip("-_")
    plain = words if words[:1].isalpha() else f"v-{words}"
    digest = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{plain[:50].rstrip('-_')}-{digest}"


def chunker_value(chunker: ChunkerRecord | None) -> str:
    """The partition value of a chunker: its name and the first 12 digits of its hash."""
    return f"{slug(chunker.name)}-{chunker.hash[:12]}" if chunker else MISSING


STAGING = "control/staging"


def staging(run_id: str) -> str:
    """Folder of a run's staged files, relative to the output."""
    return f"{STAGING}/{run_name(run_id)}"


def run_name(run_id: str) -> str:
    """The run id as the name of a file or folder."""
    return run_id if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", run_id) else slug(run_id)


def prepare(fs: fsspec.AbstractFileSystem, path: str) -> str:
    """`path`, with its folder made where there are folders; stores of objects have none."""
    if getattr(fs, "local_file", False):
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
    return path


@lru_cache(maxsize=65_536)
def partition_path(
    chunker: str | None, source: str | None, keys: tuple[str, ...] = (), values: tuple[str | None, ...] = ()
) -> str:
    """Folder of the chunks of a chunker, given as canonical JSON, and of a source, with further folders by `keys`."""
    below = (f"/{folder_key(key)}={slug(value)}" for key, value in zip(keys, values, strict=True))
    return f"chunker={chunker_value(record_of(chunker))}/source={slug(source)}{''.join(below)}"


def record_of(chunker: str | None) -> ChunkerRecord | None:
    """The chunker of which rows and files carry the canonical JSON."""
    return ChunkerRecord(**json.loads(chunker)) if chunker else None
