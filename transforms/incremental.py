"""What an incremental run has to read and what it retires: the files of the inputs, held against the ledger.

A file whose name and state stand in the ledger as done, by the same settings, is not opened. Any other is read as a
whole, and what the table held of it goes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.errors import CommitError, ConfigError
from transforms.fingerprint import fingerprint
from transforms.packs import storable
from transforms.parsers import parsers_of
from transforms.paths import FileEntry
from transforms.provenance import Cleanup, Increment, Run
from transforms.sources import SourceFile, naming
from transforms.table import Store, Table, each, to_json

# How reading is cut into pieces of work, which no row tells of.
_WORK = {"task_bytes"}


@dataclass(frozen=True, slots=True)
class Policy:
    """What is to become of sources that are not what they were.

    Args:
        cleanup: Whose rows are retired.
        max_vanished: Share of the documents that may go because their source is not there, 0 to 1.
        only_failed: Whether nothing is read but sources with dead letters.
        patterns: The patterns of the inputs, for `scoped_full`.
    """

    cleanup: Cleanup = "incremental"
    max_vanished: float = 0.5
    only_failed: bool = False
    patterns: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What an incremental run is to do.

    Args:
        files: The files to read.
        retired: Names of the files whose rows are to go, for each shard that holds some.
        increment: What the run and its report tell of it.
    """

    files: Sequence[SourceFile]
    retired: Mapping[int, Collection[str]]
    increment: Increment


def make_plan(
    output: str,
    table: Table,
    files: Sequence[SourceFile],
    partitions: Collection[str],
    settings: Mapping[str, Any],
    policy: Policy,
) -> Plan:
    """Which files are read and whose rows are retired; nothing is opened but the ledger.

    Args:
        output: Root of the table.
        table: The table as it is.
        files: All files of the inputs.
        partitions: The partitions that the run covers, `chunker=.../source=...`.
        settings: Settings of the run, as a manifest keeps them.
        policy: What is to become of sources that are not what they were.

    Raises:
        ConfigError: If more documents would go than the policy allows.
    """
    known = _read_ledger(Store(output, "reader"), table, partitions, settings)
    total = sum(source.documents for source in known.values())
    read: list[SourceFile] = []
    retired: defaultdict[int, set[str]] = defaultdict(set)
    states: Counter[str] = Counter()
    documents = 0

    def retire(uri: str, source: _Source) -> None:
        for shard in source.shards:
            retired[shard].add(uri)

    for file in files:
        uri = storable(file.uri)
        source = known.pop(uri, None)
        state = _state(file, source, policy)
        states[state] += 1
        if state in ("new", "changed", "retried"):
            read.append(file)
            if source:
                retire(uri, source)
        elif source:
            documents += source.documents

    vanished = {uri: source for uri, source in known.items() if source.state}
    gone = _to_retire(vanished, policy)
    _check_share(sum(source.documents for source in gone.values()), total, policy)
    for uri, source in gone.items():
        retire(uri, source)
    states.update(retired=len(gone), vanished=len(vanished) - len(gone))
    documents += sum(source.documents for uri, source in known.items() if uri not in gone)
    sources = {state: number for state, number in sorted(states.items()) if number}
    increment = Increment(table.seq, tuple(sorted(partitions)), tuple(sorted(retired)), sources, documents)
    return Plan(read, retired, increment)


def _state(file: SourceFile, source: _Source | None, policy: Policy) -> str:
    """What a file of the inputs is to the table."""
    if source is None:
        return "left" if policy.only_failed else "new"
    if source.failed:
        return "retried"
    if source.done and source.state and source.state == file.state:
        return "unchanged"
    return "left" if policy.only_failed or policy.cleanup == "none" else "changed"


def _to_retire(vanished: Mapping[str, _Source], policy: Policy) -> dict[str, _Source]:
    if policy.only_failed or policy.cleanup in ("none", "incremental"):
        return {}
    if policy.cleanup == "full":
        return dict(vanished)
    tests = [naming(pattern) for pattern in policy.patterns]
    return {uri: source for uri, source in vanished.items() if any(test(uri) for test in tests)}


def _check_share(gone: int, total: int, policy: Policy) -> None:
    if gone > policy.max_vanished * total:
        message = (
            f"{gone:,} of {total:,} documents would go, since the inputs do not list their sources any more; "
            "raise it if that is meant"
        )
        raise ConfigError("max_vanished", policy.max_vanished, message)


# The ledger.


@dataclass(slots=True)
class _Source:
    """What the ledger says of a file.

    Args:
        state: The file's state when it was read; None if that is not known, or if there were several.
        done: Whether all of its rows were made as they would be made now.
        failed: Whether there is a dead letter.
        documents: Its documents.
        shards: Shards that hold rows of it.
    """

    state: str | None
    done: bool = True
    failed: bool = False
    documents: int = 0
    shards: set[int] = field(default_factory=set)


def _read_ledger(
    store: Store, table: Table, partitions: Collection[str], settings: Mapping[str, Any]
) -> dict[str, _Source]:
    """The files that the ledger tells of, by name."""
    runs = _same_runs(table, settings)
    ledger = [
        entry for entry in table.files.values() if entry.kind == "documents" and entry.partition in partitions
    ]
    sources: dict[str, _Source] = {}
    for entry, groups in zip(ledger, each(lambda entry: _groups(store, entry), ledger), strict=True):
        for uri, state, run_id, media_type, *parser, status, documents in groups:
            source = sources.setdefault(uri, _Source(state))
            source.shards.add(entry.shard)
            if status == "failed":
                source.failed = True
                continue
            source.documents += documents
            source.done &= (
                source.state == state and run_id in runs and tuple(parser) in parsers_of(media_type or "")
            )
    return sources


_FACTS = ("input_state", "run_id", "media_type", "parser_name", "parser_version", "status")


def _groups(store: Store, entry: FileEntry) -> list[tuple[Any, ...]]:
    """Rows of the ledger that say the same of the same file, once, with their number."""
    with store.opened(entry.path) as file:
        rows = pq.read_table(file, columns=["source_uri", "input_uri", *_FACTS], partitioning=None)
    rows = rows.filter(pc.not_equal(rows["status"], pa.scalar("deleted")))
    rows = rows.append_column("file", file_names(rows))
    groups = rows.group_by(["file", *_FACTS], use_threads=False).aggregate([([], "count_all")])
    names = ("file", *_FACTS, "count_all")
    return list(zip(*(groups[name].to_pylist() for name in names), strict=True))


def file_names(rows: pa.Table) -> Any:
    """The names of the files of the inputs that some rows come from."""
    return pc.coalesce(rows["input_uri"], rows["source_uri"])


def _same_runs(table: Table, settings: Mapping[str, Any]) -> set[str]:
    """The runs whose rows are as a run with these settings would make them."""
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for manifest in table.manifests:
        seen[manifest["run_id"]].add(shaping(manifest["settings"]))
    return {run_id for run_id, made in seen.items() if made == {shaping(settings)}}


def shaping(settings: Mapping[str, Any]) -> str:
    """Digest of those settings of a run that shape its rows: how documents are read, parsed and cut.

    Args:
        settings: The settings, as a manifest keeps them.
    """
    read = {name: value for name, value in settings.get("read", {}).items() if name not in _WORK}
    others = {name: settings.get(name) for name in ("parse", "chunker_hash", "rules_hash", "keep_text")}
    return fingerprint({"read": read, **others})


# The names of retired files, which are too many to travel with every piece of work.


def write_retired(output: str, run: Run, retired: Mapping[int, Iterable[str]]) -> None:
    """Stage the names of retired files, for the writer of each shard.

    Args:
        output: Root of the table.
        run: The run.
        retired: The names by shard.
    """
    store = Store(output, run.run_id)
    each(lambda item: store.write(_list_of(store, item[0]), to_json(sorted(item[1]))), retired.items())


def read_retired(output: str, run: Run, shard: int) -> list[str]:
    """The names of the retired files that a shard holds rows of.

    Args:
        output: Root of the table.
        run: The run.
        shard: The shard.

    Raises:
        CommitError: If their list is gone.
    """
    if run.increment is None or shard not in run.increment.retired_shards:
        return []
    store = Store(output, run.run_id)
    data = store.read(_list_of(store, shard))
    if data is None:
        raise CommitError(
            f"run {run.run_id}: what it retires of shard {shard} is not staged any more; run again"
        )
    return list(json.loads(data))


def _list_of(store: Store, shard: int) -> str:
    return f"{store.staging}/retired/{shard:05d}.json"
