"""The job: documents in, a committed chunk table out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.options import JobSettings, RunSettings
from transforms.commit import abort, check_output, commit, read_report, source_partitions, write_report
from transforms.errors import ChunkmillError, ConfigError
from transforms.fingerprint import fingerprint
from transforms.incremental import Plan, Policy, make_plan, write_retired
from transforms.parquet_files import Layout
from transforms.partitions import check_keys
from transforms.paths import chunker_value
from transforms.provenance import Run, WriteMode, pipeline_version
from transforms.run_report import Report, with_seconds
from transforms.sources import ReadSettings, SourceFile, check_columns, estimated_bytes, match, names
from transforms.storage import filesystem, public_uri
from transforms.table import Table

if TYPE_CHECKING:
    import apache_beam as beam

    from pipelines.runners import Distribution

_SHARD_BYTES = 128 << 20
_WAVES, _SMALLEST_WAVE = 64, 1 << 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """A run that is ready to start: everything that could refuse it has been asked.

    Args:
        settings: What it was told.
        files: The files it reads.
        run: The run as the table will name it.
        plan: What it leaves as it is, if it is incremental.
    """

    settings: RunSettings
    files: Sequence[SourceFile]
    run: Run
    plan: Plan | None = None


@contextmanager
def workers_standing_by(settings: RunSettings) -> Iterator[None]:
    """Has the worker processes of a run wait with all that it needs, where they can be forked from this process.

    It is for a process that does nothing else: the workers have whatever is open here.

    Args:
        settings: What the run is told.
    """
    if settings.job.workers == 1 or settings.job.runner not in {"DirectRunner", "SparkRunner"}:
        yield
        return
    with suppress(ConfigError):  # Which the run is refused for, if it has anything to read.
        _load(settings)
    from pipelines import worker_processes

    with worker_processes.standing_by(settings.job.workers):
        yield


def prepare(settings: RunSettings) -> Job:
    """List the inputs, check the output, and name the run.

    Args:
        settings: What the run is told.

    Raises:
        ConfigError: If an input matches nothing, a column is missing, or the output cannot take the run.
    """
    job = settings.job
    filesystem(job.output, setting="output")  # refuses credentials, which no later message may then show
    files = _matched(settings)
    _check_apart(job, files)
    check_report(job.report)
    created_at = _logical_time(job.run_time, files)
    recorded = settings.recorded()
    run_id = job.run_id or _derived_id(files, recorded)
    table = Table(job.output)
    mode = job.mode or ("incremental" if table.exists else "overwrite")
    check_output(job.output, mode, run_id)
    if job.only_failed and not (mode == "incremental" and table.exists):
        raise ConfigError(
            "only_failed", True, "needs the mode incremental, and a table that tells what failed"
        )
    plan = _plan(settings, table, files, recorded) if mode == "incremental" else None
    to_read = plan.files if plan else files
    any(check_columns(file, settings.read) for file in to_read if file.format == "parquet")
    if to_read:
        # Fails here rather than on every worker if a tokenizer cannot be loaded.
        _load(settings)
    shards = table.shards or job.shards or 1 + estimated_bytes(files) // _SHARD_BYTES
    if job.shards and job.shards != shards:
        raise ConfigError("shards", job.shards, f"the table has {shards}; `chunkmill compact` changes that")
    run = Run(
        run_id=run_id,
        created_at=created_at,
        mode=mode,
        shards=shards,
        source_name=settings.read.source_name,
        job_id=job.job_id,
        settings=recorded,
        keep_text=job.keep_text,
        partition_by=_partition_by(settings, mode, table),
        increment=plan.increment if plan else None,
    )
    return Job(settings, to_read, run, plan)


def build(job: Job) -> Callable[[beam.Pipeline], object]:
    """What adds the job's transforms to a pipeline.

    Args:
        job: The job.
    """
    from transforms.chunk import ChunkDocuments
    from transforms.parse import ParseDocuments
    from transforms.read import ReadDocuments
    from transforms.waves import RunInWaves
    from transforms.write import WriteChunks

    settings = job.settings
    layout = Layout(profile="compat" if settings.job.compat else "standard")
    others = [chunker.record for chunker in settings.chunking.chunkers[1:]]

    def add_to(pipeline: beam.Pipeline) -> object:
        read = ReadDocuments(job.files, _in_waves(settings, job.files))
        parse = ParseDocuments(settings.parse)
        chunk = ChunkDocuments(settings.chunker, settings.rules)
        write = WriteChunks(settings.job.output, job.run, settings.chunker.record, layout, others)
        if settings.job.runner == "DirectRunner":
            return pipeline | "Run" >> RunInWaves(read, parse, chunk, write)
        return pipeline | "Read" >> read | "Parse" >> parse | "Chunk" >> chunk | "Write" >> write

    return add_to


def _in_waves(settings: RunSettings, files: Sequence[SourceFile]) -> ReadSettings:
    """How to read so that there are waves enough for all workers to be done at about the same time.

    Their number does not count: with another one too, a rerun is to find the waves that are done.
    """
    read = settings.read
    if settings.job.runner != "DirectRunner":
        return read
    task_bytes = max(estimated_bytes(files) // _WAVES, _SMALLEST_WAVE)
    return read.model_copy(update={"task_bytes": min(task_bytes, read.task_bytes)})


def run(job: Job) -> Report | None:
    """Run a job to its end and give its report; None if it was only submitted.

    The table is as it was unless the run is committed, also after Ctrl-C.

    Args:
        job: The job.

    Raises:
        CommitError: If another run was faster.
    """
    if job.plan and not job.files and not job.plan.retired:
        chunkers = [chunker.record for chunker in job.settings.chunking.chunkers]
        return with_seconds(commit([], job.run, job.settings.job.output, chunkers), {})
    from pipelines.runners import run_pipeline

    settings = job.settings
    earlier = read_report(settings.job.output, job.run.run_id)
    try:
        if job.plan:
            write_retired(settings.job.output, job.run, job.plan.retired)
        result = run_pipeline(
            build(job), runner=settings.job.runner, workers=settings.job.workers, beam_args=settings.beam_args
        )
    except (ChunkmillError, KeyboardInterrupt):
        abort(settings.job.output, job.run.run_id)
        raise
    except BaseException:
        # A rerun goes on with the waves that are done, as it does after a kill.
        abort(settings.job.output, job.run.run_id, keep_waves=True)
        raise
    report = read_report(settings.job.output, job.run.run_id)
    if report and report == earlier:
        # The table held all of it already, and the report of the run that wrote it stays.
        sources = dict(job.plan.increment.sources) if job.plan else report["sources"]
        report = {**report, "outcome": "unchanged", "replaced_files": 0, "sources": sources}
    engines = [name.partition("engine:")[2] for name in sorted(result.counters) if "engine:" in name]
    if report is None:
        return None
    complete = with_seconds(report, _seconds(result.distributions), engines)
    if complete["outcome"] == "committed":
        write_report(settings.job.output, complete)
    return complete


def _matched(settings: RunSettings) -> list[SourceFile]:
    """The files of all inputs; one that names none is at least told of."""
    job = settings.job
    found: dict[str, SourceFile] = {}
    for pattern in job.input:
        files = match([pattern], allow_empty=job.allow_empty, input_format=settings.read.input_format)
        if not files:
            _log.warning("input %r matches no file", public_uri(pattern) if "://" in pattern else pattern)
        found |= {file.uri: file for file in files}
    return [found[uri] for uri in sorted(found)]


def _load(settings: RunSettings) -> None:
    """Load the vocabularies and, at the same time, import Beam: either takes a second, mostly without Python's lock."""
    with ThreadPoolExecutor(1) as thread:
        counters = thread.map(lambda chunker: chunker.counter, settings.chunking.chunkers)
        import pipelines.runners  # noqa: F401
        import transforms.waves  # noqa: F401

        _ = [*counters]


def _plan(
    settings: RunSettings, table: Table, files: Sequence[SourceFile], recorded: Mapping[str, object]
) -> Plan:
    job = settings.job
    policy = Policy(job.cleanup, job.max_vanished, job.only_failed, job.input)
    return make_plan(job.output, table, files, _covered(settings), recorded, policy)


def _covered(settings: RunSettings) -> set[str]:
    """The partitions that a run covers: those of its chunkers and its source."""
    chunkers = (chunker_value(chunker.record) for chunker in settings.chunking.chunkers)
    return source_partitions(settings.read.source_name, chunkers)


def _check_apart(job: JobSettings, files: Sequence[SourceFile]) -> None:
    """Refuse inputs that lie in the output, and a run that writes what the next one would read."""
    root = public_uri(job.output).rstrip("/") + "/"
    real = f"{_real(root[:-1])}/"
    for file in files:
        if file.uri.startswith(root) or _real(file.uri).startswith(real):
            raise ConfigError("input", file.uri, f"lies inside the output {job.output}; name another output")
    for setting, value, uri in _written(job, root):
        for pattern in job.input:
            if names(pattern, uri) or names(pattern, _real(uri)):
                raise ConfigError(
                    setting, value, f"lies inside the input {pattern}; the next run would read it"
                )


def _real(uri: str) -> str:
    """Where a file lies once the links to its folder are followed; stores have none."""
    folder, slash, name = uri.rpartition("/")
    return uri if "://" in uri else f"{_real_folder(folder)}{slash}{name}"


@lru_cache(maxsize=65_536)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder) if folder else folder


def _written(job: JobSettings, root: str) -> Iterator[tuple[str, str, str]]:
    """A setting, its value and a file that the run writes for it, for each kind of file."""
    yield "output", job.output, f"{root}chunks/chunker=c/source=s/part-00000.parquet"
    yield "output", job.output, f"{root}control/commits/00000001.json"
    if job.report:
        yield "report", job.report, public_uri(job.report)


def _partition_by(settings: RunSettings, mode: WriteMode, table: Table) -> tuple[str, ...]:
    """The keys of the run, which are those of the table unless it replaces all of that."""
    job = settings.job
    if job.partition_by is None:
        return table.partition_by
    check_keys(job.partition_by)
    if job.partition_by != table.partition_by:
        replaced = _covered(settings) if mode == "overwrite" else set()
        held_by = (e for e in table.files.values() if e.rows and not e.tells_of_a_commit)
        if any(entry.partition not in replaced for entry in held_by):
            held = ",".join(table.partition_by) or "nothing"
            given = ",".join(job.partition_by)
            message = f"the table is partitioned by {held}, which stays so until a run overwrites all of it"
            raise ConfigError("partition_by", given, message)
    return job.partition_by


def check_report(report: str | None) -> None:
    """Refuse a report that could not be written once there is one.

    Args:
        report: File to write it to.

    Raises:
        ConfigError: If it cannot be written there.
    """
    if report is None:
        return
    path = Path(report)
    if path.is_dir():
        raise ConfigError("report", report, "is a folder; name a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigError("report", report, "cannot be written; is its folder there?")


def _derived_id(files: Sequence[SourceFile], recorded: Mapping[str, object]) -> str:
    """The id of a run by its inputs and settings, so that the same command names the same run."""
    return fingerprint(
        {
            "files": [(file.uri, file.size, file.etag, file.version, file.modified_at) for file in files],
            "settings": recorded,
            "version": pipeline_version(),
        }
    )


def _logical_time(given: str | None, files: Sequence[SourceFile]) -> int:
    if given is None:
        return max((file.modified_at or 0 for file in files), default=0)
    try:
        moment = datetime.fromisoformat(given.replace("Z", "+00:00"))
    except ValueError as error:
        raise ConfigError("run_time", given, f"is not an ISO 8601 time: {error}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1_000_000)


def _seconds(distributions: Mapping[str, Distribution]) -> dict[str, float]:
    return {
        name.removeprefix("chunkmill/").removesuffix("_ms"): value.total / 1000
        for name, value in distributions.items()
        if name.endswith("_ms")
    }
