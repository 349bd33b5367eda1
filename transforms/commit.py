"""From staged files to one committed run: a reader of manifests sees the old table or the new one.

Data files move to names made of their digest, so that a repeat does nothing. The run counts from the moment
its manifest `control/commits/<seq>.json` is created, which only one run can do. Cleaning up comes after that,
and the next commit finishes it if it was cut off.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from transforms import run_report
from transforms.errors import CommitError, ConfigError
from transforms.provenance import ChunkerRecord, Run, WriteMode, canonical_json
from transforms.run_report import Report
from transforms.schemas import CHUNKERS, SCHEMAS, fingerprint
from transforms.shards import FileEntry, chunker_value, prepare, run_name, slug, staging, write_empty
from transforms.storage import filesystem, public_uri

Manifest = dict[str, Any]
T = TypeVar("T")
S = TypeVar("S")

_THREADS = 8
_MOVES = "moves.json"
# What a manifest may name, and so all that may ever be deleted for it.
_DATA_FILE = re.compile(
    r"(chunks|documents|dead_letters)(/[a-z][a-z0-9_]*=[a-z0-9_-]+)+/part-[0-9]+-of-[0-9]+-[0-9a-f]{16}\.parquet"
)


class _Store:
    """The files below an output, by paths relative to it.

    Args:
        output: Root of the table.
        run_id: Run whose staging may hold files that are not whole yet.
    """

    def __init__(self, output: str, run_id: str) -> None:
        self._fs, root = filesystem(output)
        self._fs.invalidate_cache()
        self._root = root.rstrip("/")
        self._local: bool = getattr(self._fs, "local_file", False)
        self.staging = staging(run_id)

    def at(self, path: str) -> str:
        """The full path."""
        return f"{self._root}/{path}"

    def names(self, folder: str) -> list[str]:
        """Names in a folder; none if it is missing."""
        try:
            return sorted(path.rpartition("/")[2] for path in self._fs.ls(self.at(folder), detail=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None if it is missing."""
        try:
            data: bytes = self._fs.cat_file(self.at(path))
        except FileNotFoundError:
            return None
        return data

    def size(self, path: str) -> int | None:
        """Bytes of a file; None if it is missing."""
        try:
            size: int = self._fs.info(self.at(path))["size"]
        except FileNotFoundError:
            return None
        return size

    def write(self, path: str, data: bytes) -> None:
        """Write a file, in place of what is there; never half of it."""
        if self._local:
            self.move(self._whole(data), path)
        else:
            self._fs.pipe_file(self.at(path), data)

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not be there; of two writers one fails."""
        if not self._local:
            self._fs.pipe_file(self.at(path), data, mode="create")
            return
        # fsspec looks first and writes then, so that two writers may both succeed; a link cannot.
        whole = self._whole(data)
        target = prepare(self._fs, self.at(path))
        try:
            os.link(self.at(whole), target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with open(target, "xb") as file:
                file.write(data)

    def _whole(self, data: bytes) -> str:
        path = f"{self.staging}/{uuid4().hex}"
        self._fs.pipe_file(prepare(self._fs, self.at(path)), data)
        return path

    def move(self, path: str, target: str) -> None:
        """Move a file, in place of what is there."""
        self._fs.mv(self.at(path), prepare(self._fs, self.at(target)))

    def remove(self, paths: Iterable[str]) -> None:
        """Remove those of the files that are there."""
        _each(self._remove, paths)

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(self.at(path))

    def clear_staging(self) -> None:
        """Remove the staged files of the run."""
        with suppress(FileNotFoundError):
            self._fs.rm(self.at(self.staging), recursive=True)


def _each(function: Callable[[S], T], values: Iterable[S]) -> list[T]:
    """`function` of each value, many at a time, since each call may wait for a store."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, values))


def _json(value: object) -> bytes:
    # Halves of surrogate pairs, which names of files may hold, become the escapes that JSON has for them.
    return canonical_json(value).encode("utf-8", "backslashreplace")


# Reading a table.


class Table:
    """What the manifests say the table is.

    Args:
        output: Root of the table.

    Attributes:
        seq: Number of the last commit; 0 if there is none.
        last: The last manifest.
        files: Entries of the current data files by path.

    Raises:
        CommitError: If a manifest is missing, or is none.
    """

    def __init__(self, output: str) -> None:
        store = _Store(output, "reader")
        names = [name for name in store.names("control/commits") if re.fullmatch(r"\d{8}\.json", name)]
        self.seq = 0
        self.last: Manifest | None = None
        self.files: dict[str, FileEntry] = {}
        for manifest in _each(lambda name: _manifest(store, f"control/commits/{name}"), names):
            self.seq += 1
            if manifest is None or manifest["seq"] != self.seq:
                raise CommitError(f"{public_uri(output)}: the manifest of commit {self.seq} is missing")
            for path in manifest["removed"]:
                self.files.pop(path, None)
            self.files |= {entry["path"]: FileEntry(**entry, staged="") for entry in manifest["added"]}
            self.last = manifest

    @property
    def exists(self) -> bool:
        """Whether anything was ever committed."""
        return self.seq > 0

    @property
    def shards(self) -> int | None:
        """Shards of the table; None if there is no commit."""
        return self.last["shards"] if self.last else None


def _manifest(store: _Store, path: str) -> Manifest | None:
    data = store.read(path)
    if data is None:
        return None
    try:
        manifest: Manifest = json.loads(data)
        paths = [*manifest["removed"], *(entry["path"] for entry in manifest["added"])]
    except (ValueError, KeyError, TypeError) as error:
        raise CommitError(f"{path} is no manifest: {error!r}") from error
    for name in paths:
        if not _DATA_FILE.fullmatch(name):
            raise CommitError(f"{path} names {name!r}, which is no data file of a table")
    return manifest


def table_shards(output: str) -> int | None:
    """Shards of the table at `output`, which every later run has to use; None if there is no table."""
    return Table(output).shards


def taken_ids(output: str, run: Run, shard: int) -> dict[tuple[str, str], str]:
    """Addresses of the documents of a shard that stay in the table when a run is committed.

    Args:
        output: Root of the table.
        run: The run.
        shard: The shard.

    Returns:
        The addresses by chunker value and document id; none of documents that failed.
    """
    taken: dict[tuple[str, str], str] = {}
    if run.mode == "overwrite" and run.source_name is None:
        return taken  # what is replaced is known only when all of it has been written
    table = Table(output)
    for path, entry in table.files.items():
        chunker, source = (part.partition("=")[2] for part in entry.partition.split("/"))
        replaced = run.mode == "overwrite" and source == slug(run.source_name)
        if entry.kind != "documents" or replaced or f"/part-{shard:05d}-of-" not in path:
            continue
        fs, root = filesystem(output)
        with fs.open(f"{root.rstrip('/')}/{path}") as file:
            columns = ("document_id", "source_uri", "status", "run_id")
            rows = pq.read_table(file, columns=list(columns), partitioning=None)
        for document_id, uri, status, run_id in zip(
            *(rows[name].to_pylist() for name in columns), strict=True
        ):
            # What the same run appended before is what it is about to write again.
            if status != "failed" and run_id != run.run_id:
                taken[chunker, document_id] = uri
    return taken


def write_report(output: str, report: Report) -> None:
    """Put a report, once it is complete, in the place of the one that the commit wrote."""
    _Store(output, report["run_id"]).write(_report_path(report["run_id"]), _json(report))


def read_report(output: str, run_id: str) -> Report | None:
    """The report of a run of the table at `output`; None if it has not been committed."""
    data = _Store(output, run_id).read(_report_path(run_id))
    return None if data is None else dict(json.loads(data))


# Checking an output.


def check_output(output: str, mode: WriteMode, run_id: str | None = None) -> None:
    """Refuse, before any work, an output that the run could not be committed to.

    Args:
        output: Root of the table.
        mode: Mode of the run.
        run_id: The run, which may repeat itself.

    Raises:
        ConfigError: If the output is a file or cannot be written, or there is something and must not be.
    """
    fs, path = filesystem(output, setting="output")
    root, name = path.rstrip("/"), public_uri(output)
    if fs.isfile(root):
        raise ConfigError("output", name, "is a file; name a folder")
    if mode == "error_if_exists":
        table = Table(output)
        if table.last and table.last["run_id"] != run_id:
            raise ConfigError("output", name, "holds a table already; name another folder or another mode")
        if not table.exists and fs.isdir(root) and fs.ls(root) and not fs.isdir(f"{root}/control"):
            raise ConfigError("output", name, "is not empty; name another folder or another mode")
    there = fs.isdir(root)
    probe = f"{root}/control/staging/probe-{uuid4().hex}"
    try:
        fs.pipe_file(prepare(fs, probe), b"")
        fs.rm_file(probe)
        if getattr(fs, "local_file", False):
            # Nothing stays of a run that is refused for another reason.
            with suppress(OSError):
                for folder in (f"{root}/control/staging", f"{root}/control", root)[: 2 if there else 3]:
                    os.rmdir(folder)
    except Exception as error:  # every store has errors of its own
        raise ConfigError("output", name, f"cannot be written: {error}") from error


# Committing a run.


def commit(
    entries: Iterable[FileEntry], run: Run, output: str, chunkers: Iterable[ChunkerRecord] = ()
) -> Report:
    """Make the staged files of a run part of the table; gives the report of the run.

    A repeat, also after a crash, does what is left to do. A run that the table holds already changes nothing.

    Args:
        entries: All files of the run.
        run: The run.
        output: Root of the table.
        chunkers: Chunkers of the run, which may have no files; the first stands for a run without chunks.

    Raises:
        CommitError: If another run was faster, or the table has another number of shards, or exists and must
            not. The table is as it was, and nothing of the run is left.
    """
    try:
        return _commit(list(entries), run, output, list(chunkers))
    except CommitError:
        abort(output, run.run_id)
        raise


def abort(output: str, run_id: str) -> None:
    """Remove what a run left that was not committed: its staging, and files it had already moved."""
    store, table = _Store(output, run_id), Table(output)
    if table.last and table.last["run_id"] == run_id:
        _finish(store, table.last)
    moves = json.loads(store.read(f"{store.staging}/{_MOVES}") or b"[]")
    store.remove(path for path in moves if _DATA_FILE.fullmatch(path) and path not in table.files)
    store.clear_staging()


def _commit(entries: list[FileEntry], run: Run, output: str, chunkers: list[ChunkerRecord]) -> Report:
    store, table = _Store(output, run.run_id), Table(output)
    if table.last:
        _finish(store, table.last)
    records = {chunker_value(c): c for c in (*chunkers, *(e.chunker for e in entries if e.chunker))}

    files = _stays(table, entries, run, records) | {entry.path: entry for entry in entries}
    if not any(entry.kind == "chunks" for entry in files.values()):
        empty = write_empty(run, output, chunkers[0] if chunkers else None)
        files[empty.path] = empty
    added = [files[path] for path in sorted(files.keys() - table.files.keys())]
    removed = sorted(table.files.keys() - files.keys())

    manifest = table.last
    changed = bool(added or removed)
    if changed or manifest is None:
        manifest = _new_manifest(table, files, added, removed, run, records)
        _add_chunkers(store, records, run)
        _move(store, added)
        _publish(store, manifest)
        _finish(store, manifest)

    path = _report_path(run.run_id)
    repeated = not changed and store.size(path) is not None
    new = manifest["run_id"] == run.run_id and not repeated
    report = run_report.build(
        entries,
        run,
        records,
        seq=manifest["seq"],
        outcome="committed" if new else "unchanged",
        replaced=len(manifest["removed"]) if new else 0,
    )
    if not repeated:
        store.write(path, _json(report))
    store.clear_staging()
    return report


def _report_path(run_id: str) -> str:
    return f"control/runs/{run_name(run_id)}.json"


def _stays(table: Table, entries: list[FileEntry], run: Run, chunkers: Iterable[str]) -> dict[str, FileEntry]:
    """The files of the table that the run leaves as they are."""
    own = {entry.path for entry in entries}
    covered = {entry.partition for entry in entries}
    # A run without a document of its source still replaces what the table held of it.
    covered |= {f"chunker={value}/source={slug(run.source_name)}" for value in chunkers if run.source_name}
    covered = covered if run.mode == "overwrite" else set()
    chunks = any(entry.kind == "chunks" for entry in entries)
    stays = {
        path: entry
        for path, entry in table.files.items()
        if path in own or (entry.partition not in covered and (entry.rows or not chunks))
    }
    others = stays.keys() - own
    if others and run.mode == "error_if_exists":
        raise CommitError(f"run {run.run_id}: the output holds a table, and the mode is error_if_exists")
    if others and table.shards != run.shards:
        raise CommitError(f"run {run.run_id} has {run.shards} shards, but the table has {table.shards}")
    return stays


def _new_manifest(
    table: Table,
    files: dict[str, FileEntry],
    added: list[FileEntry],
    removed: list[str],
    run: Run,
    chunkers: dict[str, ChunkerRecord],
) -> Manifest:
    return {
        "seq": table.seq + 1,
        "parent": table.seq or None,
        "run_id": run.run_id,
        "created_at": run.created_at,
        "mode": run.mode,
        "shards": run.shards,
        "added": [_listed(entry) for entry in added],
        "removed": removed,
        "totals": {kind: _totals(e for e in files.values() if e.kind == kind) for kind in SCHEMAS},
        "chunkers": {value: asdict(chunker) for value, chunker in chunkers.items()},
        "settings": dict(run.settings),
        "schemas": {kind: fingerprint(schema) for kind, schema in SCHEMAS.items()},
        "versions": run_report.versions(),
    }


def _listed(entry: FileEntry) -> dict[str, Any]:
    return {
        name: value for name, value in asdict(entry).items() if name not in ("staged", "chunker", "tally")
    }


def _totals(entries: Iterable[FileEntry]) -> dict[str, int]:
    held = list(entries)
    return {
        "files": len(held),
        "rows": sum(entry.rows for entry in held),
        "bytes": sum(entry.bytes for entry in held),
        "tokens": sum(entry.tokens for entry in held),
    }


def _add_chunkers(store: _Store, chunkers: dict[str, ChunkerRecord], run: Run) -> None:
    """One small file for each chunker that the table has not seen."""
    for value, chunker in chunkers.items():
        path = f"chunkers/{value}.parquet"
        if store.size(path) is None:
            row = {
                "chunker_hash": chunker.hash,
                "chunker_name": chunker.name,
                "chunker_version": chunker.version,
                "settings": chunker.settings,
                "tokenizer": chunker.tokenizer,
                "vocabulary_digest": chunker.vocabulary_digest,
                "chunk_size": chunker.chunk_size,
                "first_seen": run.created_at,
            }
            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pylist([row], schema=CHUNKERS), sink, compression="zstd")
            store.write(path, sink.getvalue().to_pybytes())


def _move(store: _Store, entries: list[FileEntry]) -> None:
    """Move staged files to their final names, unless they are there."""
    # Told before it is done, so that an abort finds files that no manifest names.
    store.write(f"{store.staging}/{_MOVES}", _json([entry.path for entry in entries]))

    def move(entry: FileEntry) -> None:
        if store.size(entry.path) == entry.bytes:
            return
        try:
            store.move(entry.staged, entry.path)
        except FileNotFoundError as error:
            # Another try of this commit may have moved it in between.
            if store.size(entry.path) != entry.bytes:
                raise CommitError(f"staged file {entry.staged} is gone; run again") from error

    _each(move, entries)


def _publish(store: _Store, manifest: Manifest) -> None:
    """Create the manifest: from here on the run counts."""
    path = f"control/commits/{manifest['seq']:08d}.json"
    try:
        store.create(path, _json(manifest))
    except Exception as error:
        # A lost answer to a write that did arrive looks like a lost race, so what is there decides.
        held = _manifest(store, path)
        if held is None:
            raise
        if (held["run_id"], held["added"]) != (manifest["run_id"], manifest["added"]):
            raise CommitError(
                f"run {held['run_id']} made commit {manifest['seq']} while run {manifest['run_id']} was at "
                "work; nothing was kept of the latter: run it again"
            ) from error


def _finish(store: _Store, manifest: Manifest) -> None:
    """What follows a manifest: the pointer to it, and the end of the files it replaced."""
    name = f"{manifest['seq']:08d}.json"
    latest = _json({"seq": manifest["seq"], "manifest": f"control/commits/{name}"})
    if store.read("control/LATEST") != latest:
        store.write("control/LATEST", latest)
    store.remove(manifest["removed"])
