"""From staged files to one committed run: a reader of manifests sees the old table or the new one.

Data files move to names made of their digest, so that a repeat does nothing. The run counts from the moment
its manifest `control/commits/<seq>.json` is created, which only one run can do. Cleaning up comes after that,
and the next commit finishes it if it was cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from transforms import run_report
from transforms.differences import differences
from transforms.errors import CommitError, ConfigError
from transforms.partitions import check_counts, check_known
from transforms.paths import STAGING, FileEntry, chunker_value, prepare, run_name, slug, staging
from transforms.provenance import ChunkerRecord, Run, WriteMode
from transforms.run_report import Report
from transforms.schemas import CHUNKERS, SCHEMAS, fingerprint
from transforms.shards import write_empty
from transforms.storage import filesystem, public_uri
from transforms.table import COMMITS, DATA_FILE, LATEST, Manifest, Store, Table, each, read_manifest, to_json

_MOVES = "moves.json"


# Reading a table.


def source_partitions(source_name: str, chunkers: Iterable[str]) -> set[str]:
    """The partitions of a data set, by the chunkers as partitions name them."""
    return {f"chunker={chunker}/source={slug(source_name)}" for chunker in chunkers}


def write_report(output: str, report: Report) -> None:
    """Put a report, once it is complete, in the place of the one that the commit wrote."""
    store = Store(output, report["run_id"])
    store.write(_report_path(report["run_id"]), to_json(report))
    store.clear_staging()


def read_report(output: str, run_id: str) -> Report | None:
    """The report of a run of the table at `output`; None if it has not been committed."""
    data = Store(output, run_id).read(_report_path(run_id))
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
    local = getattr(fs, "local_file", False)
    folders = (f"{root}/{STAGING}", f"{root}/control", root) if local else ()
    made = [folder for folder in folders if not fs.isdir(folder)]
    probe = f"{root}/{STAGING}/probe-{uuid4().hex}"
    try:
        fs.pipe_file(prepare(fs, probe), b"")
        with suppress(FileNotFoundError):  # asked for twice, since the first answer was lost
            fs.rm_file(probe)
        # Nothing stays of a run that is refused for another reason, and nothing goes that was there.
        with suppress(OSError):
            for folder in made:
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


def finish(table: Table, output: str) -> None:
    """Do what is left to do after the last commit of a table, if it was cut off."""
    if table.last:
        _finish(Store(output, table.last["run_id"]), table.last)


def rewrite(table: Table, files: Mapping[str, FileEntry], run: Run, output: str, report: Report) -> None:
    """Put other files with the same rows in the place of those of a table, as the commit after it.

    Args:
        table: The table as it was when the files were read.
        files: All files that it is to have, by path.
        run: The run that staged the new ones.
        output: Root of the table.
        report: The report of the run.

    Raises:
        CommitError: If there has been another commit.
    """
    store = Store(output, run.run_id)
    added = [files[path] for path in sorted(files.keys() - table.files.keys())]
    removed = sorted(table.files.keys() - files.keys())
    last: Manifest = table.last or {}
    chunkers = {value: ChunkerRecord(**facts) for value, facts in last["chunkers"].items()}
    _put(store, _new_manifest(table, dict(files), added, removed, run, chunkers), added, report)
    store.clear_staging()


def overtaken(winner: Manifest, run_id: str) -> CommitError:
    """What is said of a run when another one was faster.

    Args:
        winner: Manifest of the other one.
        run_id: The run that lost.
    """
    return CommitError(
        f"run {winner['run_id']} made commit {winner['seq']} while run {run_id} was at work; nothing was kept of the "
        "latter: run it again"
    )


def abort(output: str, run_id: str, moved: Iterable[str] = (), *, keep_waves: bool = False) -> None:
    """Remove what a run left that was not committed: its staging, and files it had already moved.

    Args:
        output: Root of the table.
        run_id: The run.
        moved: Files that it may have moved, besides those that its staging tells of.
        keep_waves: Whether to leave the waves that are done, for a rerun to go on with.
    """
    store, table = Store(output, run_id), Table(output)
    if table.last and table.last["run_id"] == run_id:
        _finish(store, table.last)
    moves = {*moved, *_moves(store, store.staging)}
    # Two that compact the same rows move the same files, and one of them may be about to commit them.
    others = {f"{STAGING}/{name}" for name in store.names(STAGING)} - {store.staging}
    spared = {*table.files, *(path for folder in others for path in _moves(store, folder))}
    store.remove(path for path in moves - spared if DATA_FILE.fullmatch(path))
    store.clear_staging(keep_waves=keep_waves)


def _commit(entries: list[FileEntry], run: Run, output: str, chunkers: list[ChunkerRecord]) -> Report:
    store, table = Store(output, run.run_id), Table(output)
    if table.last:
        _finish(store, table.last)
    records = {chunker_value(c): c for c in (*chunkers, *(e.chunker for e in entries if e.chunker))}

    files = _stays(table, entries, run, records) | {entry.path: entry for entry in entries}
    if not any(entry.kind == "chunks" for entry in files.values()):
        empty = write_empty(run, output, chunkers[0] if chunkers else None)
        files[empty.path] = empty
    _check_partitions(files.values(), run)
    added = [files[path] for path in sorted(files.keys() - table.files.keys())]
    removed = sorted(table.files.keys() - files.keys())

    if table.last and not (added or removed):
        report = run_report.build(entries, run, records, seq=table.seq, outcome="unchanged", replaced=0)
        if store.size(_report_path(run.run_id)) is None:
            store.write(_report_path(run.run_id), to_json(report))
    else:
        _check_base(table, run, output)
        by_shard = table.shards in (None, run.shards)
        old = [table.files[path] for path in removed]
        added += differences(store, run, output, old, added, by_shard=by_shard)
        added.sort(key=lambda entry: entry.path)
        files |= {entry.path: entry for entry in added}
        manifest = _new_manifest(table, files, added, removed, run, records)
        written = [*entries, *(entry for entry in added if entry.tells_of_a_commit)]
        report = run_report.build(
            written, run, records, seq=manifest["seq"], outcome="committed", replaced=len(removed)
        )
        _add_chunkers(store, records, run)
        _put(store, manifest, added, report)
    store.clear_staging()
    return report


def _check_base(table: Table, run: Run, output: str) -> None:
    """Refuse an incremental run whose part of the table is not what it was when it was planned."""
    if run.increment is None:
        return
    planned, found = (
        {path for path, entry in held.files.items() if entry.partition in run.increment.partitions}
        for held in (Table(output, run.increment.base), table)
    )
    if planned != found:
        other = table.last["run_id"] if table.last else None
        raise CommitError(
            f"run {other} changed the table while run {run.run_id} was at work; nothing was kept of the latter: "
            "run it again"
        )


def _report_path(run_id: str) -> str:
    return f"control/runs/{run_name(run_id)}.json"


def _pending_report(manifest: Manifest) -> str:
    """Where a report waits for its commit."""
    return f"{staging(manifest['run_id'])}/report-{manifest['seq']:08d}.json"


def _stays(table: Table, entries: list[FileEntry], run: Run, chunkers: Iterable[str]) -> dict[str, FileEntry]:
    """The files of the table that the run leaves as they are."""
    own = {entry.path for entry in entries}
    replaces = _replaced_by(run, entries, chunkers)
    chunks = any(entry.kind == "chunks" for entry in entries)
    stays = {
        path: entry
        for path, entry in table.files.items()
        if path in own or entry.tells_of_a_commit or (not replaces(entry) and (entry.rows or not chunks))
    }
    others = {path for path, entry in stays.items() if path not in own and not entry.tells_of_a_commit}
    if others and run.mode == "error_if_exists":
        raise CommitError(f"run {run.run_id}: the output holds a table, and the mode is error_if_exists")
    if others and table.shards != run.shards:
        raise CommitError(f"run {run.run_id} has {run.shards} shards, but the table has {table.shards}")
    if others and table.partition_by != run.partition_by:
        ours, theirs = list(run.partition_by), list(table.partition_by)
        raise CommitError(f"run {run.run_id} is partitioned by {ours}, but the table by {theirs}")
    return stays


def _check_partitions(files: Iterable[FileEntry], run: Run) -> None:
    held = [entry.folder for entry in files if entry.kind == "chunks" and entry.rows]
    check_counts(run.partition_by, held)
    check_known(run.partition_by, held)


def _replaced_by(
    run: Run, entries: Iterable[FileEntry], chunkers: Iterable[str]
) -> Callable[[FileEntry], bool]:
    """Whether the run has written anew, or done away with, what a file holds."""
    if run.mode == "overwrite":
        # A run without a document of its source still replaces what the table held of it.
        named = source_partitions(run.source_name, chunkers) if run.source_name else set()
        covered = named | {entry.partition for entry in entries}
        return lambda entry: entry.partition in covered
    if run.increment:
        partitions = run.increment.partitions
        shards = {*run.increment.retired_shards, *(entry.shard for entry in entries)}
        return lambda entry: entry.partition in partitions and entry.shard in shards
    return lambda entry: False


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
        "partition_by": list(run.partition_by),
        "added": [_listed(entry) for entry in added],
        "removed": removed,
        "totals": {kind: _totals(e for e in files.values() if e.kind == kind) for kind in SCHEMAS},
        "chunkers": {value: asdict(chunker) for value, chunker in chunkers.items()},
        "settings": dict(run.settings),
        "sources": dict(run.increment.sources) if run.increment else {},
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
        "documents": sum(entry.documents for entry in held),
        "tokens": sum(entry.tokens for entry in held),
    }


def _add_chunkers(store: Store, chunkers: dict[str, ChunkerRecord], run: Run) -> None:
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


def _put(store: Store, manifest: Manifest, added: list[FileEntry], report: Report) -> None:
    """The steps of a commit, which a rerun does again from any of them."""
    store.write(_pending_report(manifest), to_json(report))
    _move(store, added)
    _publish(store, manifest)
    _finish(store, manifest)


def _moves(store: Store, folder: str) -> list[str]:
    """The files that a run has moved or is about to, by the folder of its staging."""
    return list(json.loads(store.read(f"{folder}/{_MOVES}") or b"[]"))


def _move(store: Store, entries: list[FileEntry]) -> None:
    """Move staged files to their final names, unless they are there."""
    # Told before it is done, so that an abort finds files that no manifest names.
    store.write(f"{store.staging}/{_MOVES}", to_json([entry.path for entry in entries]))

    def move(entry: FileEntry) -> None:
        if store.size(entry.path) == entry.bytes:
            return
        try:
            store.move(entry.staged, entry.path)
        except FileNotFoundError as error:
            # Another try of this commit may have moved it in between.
            if store.size(entry.path) != entry.bytes:
                raise CommitError(f"staged file {entry.staged} is gone; run again") from error

    each(move, entries)


def _publish(store: Store, manifest: Manifest) -> None:
    """Create the manifest: from here on the run counts."""
    path = f"{COMMITS}/{manifest['seq']:08d}.json"
    try:
        store.create(path, to_json(manifest))
    except Exception as error:
        # A lost answer to a write that did arrive looks like a lost race, so what is there decides.
        held = read_manifest(store, path)
        if held is None:
            raise
        if (held["run_id"], held["added"]) != (manifest["run_id"], manifest["added"]):
            raise overtaken(held, manifest["run_id"]) from error


def _finish(store: Store, manifest: Manifest) -> None:
    """What follows a manifest: the pointer to it, its report, and the way out for the files it replaced."""
    name = f"{manifest['seq']:08d}.json"
    latest = to_json({"seq": manifest["seq"], "manifest": f"{COMMITS}/{name}"})
    if store.read(LATEST) != latest:
        store.write(LATEST, latest)
    if (report := store.read(_pending_report(manifest))) is not None:
        store.write(_report_path(manifest["run_id"]), report)
        store.remove([_pending_report(manifest)])
    each(store.retire, manifest["removed"])
