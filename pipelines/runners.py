"""Runs a pipeline on the engine of the user's choice, and leaves nothing behind.

Three engines are looked after here: this process (`DirectRunner`), worker processes of this machine
(`DirectRunner` with more than one worker) and Spark (`SparkRunner`). Any other name goes to Beam as it is.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from transforms.errors import ChunkmillError, CommitError, ConfigError

# The last line of what a worker process raised when the table could not take the run.
_REFUSED = re.compile(r"^transforms\.errors\.CommitError: (.+)$", re.MULTILINE)


def _says_something(record: logging.LogRecord) -> bool:
    # An interruption, and what Chunkmill refuses on purpose, is told by who launched the run.
    if record.exc_info and isinstance(record.exc_info[1], (KeyboardInterrupt, ChunkmillError)):
        return False
    return record.levelno >= logging.ERROR or "apache_beam" not in record.pathname


# Beam warns on every run, through its own loggers and through the root one, and first of all when imported.
logging.getLogger().addFilter(_says_something)
logging.getLogger("apache_beam").setLevel(logging.ERROR)
logging.getLogger("apache_beam.runners.common").addFilter(_says_something)
# Says again what the exception says that the launcher gets.
logging.getLogger("apache_beam.runners.worker.sdk_worker").setLevel(logging.CRITICAL)

import apache_beam as beam  # noqa: E402
import grpc  # type: ignore[import-untyped]  # noqa: E402
from apache_beam.metrics import monitoring_infos  # noqa: E402
from apache_beam.options.pipeline_options import (  # noqa: E402
    DebugOptions,
    DirectOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    SparkRunnerOptions,
    StandardOptions,
)
from apache_beam.portability import python_urns  # noqa: E402
from apache_beam.portability.api import (  # noqa: E402
    beam_fn_api_pb2,
    beam_fn_api_pb2_grpc,
    beam_provision_api_pb2,
)
from apache_beam.runners.portability.fn_api_runner import fn_runner, worker_handlers  # noqa: E402
from apache_beam.runners.portability.portable_runner import JobServiceHandle  # noqa: E402
from apache_beam.runners.portability.spark_runner import SparkJarJobServer, SparkRunner  # noqa: E402
from apache_beam.runners.runner import PipelineRunner, create_runner  # noqa: E402
from apache_beam.runners.worker import statesampler, worker_pool_main  # noqa: E402
from apache_beam.utils import thread_pool_executor  # noqa: E402
from google.protobuf import json_format  # type: ignore[import-untyped]  # noqa: E402

from pipelines import worker_processes  # noqa: E402

_PATIENCE_SECONDS = 5.0
_HOUR_MILLIS = 3_600_000
_PARTS_OF_A_WORKER = 32
_SAMPLING_MILLIS = 10
_NEWEST_JAVA = 22

# Beam looks every 200 ms at which step it is in, and each part of a step ends only with the next look.
statesampler.StateSampler.__init__.__defaults__ = (_SAMPLING_MILLIS,)


@dataclass(frozen=True)
class Distribution:
    """What was observed of one number.

    Args:
        count: How often it was observed.
        total: Sum of the observations.
        minimum: Smallest observation.
        maximum: Largest observation.
    """

    count: int
    total: int
    minimum: int
    maximum: int


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Args:
        state: Beam's name of the state; `DONE` unless the job was only submitted.
        counters: `namespace/name` of each counter of the pipeline to its value over all steps. Spark counts
            again what it runs again, such as a stage whose output it has evicted; failed tasks do not count.
        distributions: The same for distributions.
    """

    state: str
    counters: Mapping[str, int] = field(default_factory=dict)
    distributions: Mapping[str, Distribution] = field(default_factory=dict)


def run_pipeline(
    build: Callable[[beam.Pipeline], object], *, runner: str, workers: int = 1, beam_args: Sequence[str] = ()
) -> RunResult:
    """Builds a pipeline, runs it and waits for its end; a Dataflow job is submitted only.

    Ctrl-C raises KeyboardInterrupt on every engine, once all worker processes and the Spark server are gone;
    SIGTERM ends them too.

    Args:
        build: Adds the transforms to an empty pipeline.
        runner: Name of a Beam runner.
        workers: Worker processes; for `DirectRunner` and a local `SparkRunner`, at least 1. Raise it to the
            number of cores for inputs that take longer than the seconds which they take to start, unless some stand by.
        beam_args: Options of Beam, as on the command line.

    Returns:
        State and metrics.

    Raises:
        ConfigError: If the engine cannot start with these settings.
        Exception: Of the class raised in a DoFn when it ran in this process, else RuntimeError with the
            worker's traceback as its message.
    """
    if workers < 1:
        raise ConfigError("workers", workers, "at least 1 is needed")
    options = PipelineOptions(list(beam_args))
    options.view_as(SetupOptions).save_main_session = False
    engines = {"DirectRunner": _direct, "SparkRunner": _spark}
    with contextlib.ExitStack() as stack:
        if runner == "SparkRunner" or workers > 1:
            stack.enter_context(_terminable())
        engine = stack.enter_context(engines.get(runner, _any)(runner, options, workers))
        if runner in {*engines, "DataflowRunner"}:
            options.view_as(StandardOptions).no_wait_until_finish = runner == "DataflowRunner"
        try:
            with beam.Pipeline(engine, options) as pipeline:
                build(pipeline)
            return _result_of(pipeline.result)
        except RuntimeError as error:
            # Beam rebuilds what a DoFn raises, with the name of the step in it.
            if str(error).startswith("KeyboardInterrupt [while"):
                raise KeyboardInterrupt from None
            if dead := worker_processes.failed():
                status = ", ".join(map(str, dead))
                message = f"a worker process ended, status {status} (-9: killed, as when memory runs out)"
                raise RuntimeError(message) from error
            if refused := _REFUSED.search(str(error)):
                raise CommitError(refused[1]) from None
            raise
        finally:
            worker_processes.end()


def _result_of(result: Any) -> RunResult:
    if result.state != "DONE":
        return RunResult(result.state)
    metrics = result.metrics().query()
    counters: dict[str, int] = defaultdict(int)
    for metric in _of_pipeline(metrics["counters"]):
        counters[_name(metric)] += metric.result
    distributions: dict[str, Any] = {}
    for metric in _of_pipeline(metrics["distributions"]):
        seen = distributions.get(_name(metric))
        distributions[_name(metric)] = seen.combine(metric.result.data) if seen else metric.result.data
    return RunResult(
        result.state,
        dict(counters),
        {name: Distribution(d.count, d.sum, d.min, d.max) for name, d in distributions.items()},
    )


def _of_pipeline(metrics: Sequence[Any]) -> list[Any]:
    return [metric for metric in metrics if metric.key.metric.namespace != "beam"]


def _name(metric: Any) -> str:
    return f"{metric.key.metric.namespace}/{metric.key.metric.name}"


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM unwinds the stack too; else it would end this process and leave the Spark server."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM):
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def _direct(runner: str, options: PipelineOptions, workers: int) -> Iterator[PipelineRunner]:
    """Beam's FnApiRunner; `DirectRunner` by name would first try to download another runner."""
    unknown = options.get_all_options(retain_unknown_options=True).keys() - options.get_all_options().keys()
    if unknown:
        raise ConfigError("beam_args", sorted(unknown), "Beam has no such options")
    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode == "multi_threading":
        raise ConfigError(
            "direct_running_mode", "multi_threading", "it silently loses documents; give workers instead"
        )
    if direct.direct_num_workers not in (1, workers):
        raise ConfigError("direct_num_workers", direct.direct_num_workers, "give workers instead")
    direct.direct_num_workers = workers
    direct.direct_running_mode = "in_memory" if workers == 1 else "multi_processing"
    provision = beam_provision_api_pb2.ProvisionInfo(pipeline_options=_encoded(options))
    yield _DirectRunner(provision_info=fn_runner.ExtendedProvisionInfo(provision))


@contextlib.contextmanager
def _spark(runner: str, options: PipelineOptions, workers: int) -> Iterator[PipelineRunner]:
    """Beam's SparkRunner with, unless told otherwise, all of Spark and its workers on this machine."""
    flags = options.get_all_options(drop_default=True)
    spark = options.view_as(SparkRunnerOptions)
    portable = options.view_as(PortableOptions)
    threads = max(workers, 2)
    if "spark_master_url" not in flags:
        spark.spark_master_url = f"local[{threads},4]"
    if not any(e.startswith("pre_optimize") for e in options.view_as(DebugOptions).experiments or ()):
        options.view_as(DebugOptions).add_experiment("pre_optimize=all")
    if not portable.job_endpoint:
        _check_java(options.view_as(JobServerOptions).job_server_java_launcher)
        spark.spark_job_server_jar = spark.spark_job_server_jar or _cached_jar()
    engine = _SparkRunner()  # type: ignore[no-untyped-call]
    with contextlib.ExitStack() as stack:
        stack.callback(engine.stop)
        if not portable.environment_type and not portable.output_executable_path:
            # Beam's own loopback workers are threads of this process: one core.
            portable.environment_type = "EXTERNAL"
            portable.sdk_worker_parallelism = threads
            # Without it the workers of each stage are started anew.
            portable.environment_cache_millis = portable.environment_cache_millis or _HOUR_MILLIS
            portable.environment_config = stack.enter_context(_worker_pool(_encoded(options)))
        yield engine


@contextlib.contextmanager
def _any(runner: str, options: PipelineOptions, workers: int) -> Iterator[PipelineRunner]:
    try:
        engine = create_runner(runner)
    except (ImportError, ValueError) as error:
        raise ConfigError("runner", runner, str(error)) from error
    yield engine


class _DirectRunner(fn_runner.FnApiRunner):
    """Beam's FnApiRunner, but a worker that is done with its part of a step takes more of it."""

    def _get_bundle_manager(self, bundle_context_manager: Any) -> fn_runner.BundleManager:
        manager: fn_runner.BundleManager = super()._get_bundle_manager(bundle_context_manager)
        if not isinstance(manager, fn_runner.ParallelBundleManager):
            return manager
        return _SharedStep(bundle_context_manager, self._progress_frequency, manager._cache_token_generator)


class _SharedStep(fn_runner.ParallelBundleManager):
    """A step of which each worker takes one small part after the other.

    Beam's own deals all of it out at the start, after which one worker has nothing to do while another still works.
    """

    def process_bundle(
        self,
        inputs: Mapping[str, Any],
        expected_outputs: Any,
        fired_timers: Any,
        expected_output_timers: Any,
        dry_run: bool = False,
    ) -> tuple[beam_fn_api_pb2.InstructionResponse, list[Any]]:
        """Runs all parts, and gives what they tell together."""
        workers = self.bundle_context_manager.worker_handlers
        count = _PARTS_OF_A_WORKER * len(workers)
        dealt = zip(*(buffer.partition(count) for buffer in inputs.values()), strict=True)
        first, *others = (dict(zip(inputs, part, strict=True)) for part in dealt)
        parts = deque(
            [(first, fired_timers), *((part, {}) for part in others if any(map(any, part.values())))]
        )
        results: list[Any] = []

        def work(worker: Any) -> None:
            step = copy.copy(self.bundle_context_manager)
            step._worker_handlers = [worker]
            manager = fn_runner.BundleManager(step, self._progress_frequency, self._cache_token_generator)
            while True:
                try:
                    part, timers = parts.popleft()
                except IndexError:
                    return
                try:
                    result = manager.process_bundle(
                        part, expected_outputs, timers, expected_output_timers, dry_run
                    )
                except BaseException:
                    parts.clear()
                    raise
                results.append(result)

        with thread_pool_executor.shared_unbounded_instance() as executor:
            _ = [*executor.map(work, workers)]
        infos = chain.from_iterable(result.process_bundle.monitoring_infos for result, _ in results)
        told = beam_fn_api_pb2.ProcessBundleResponse(monitoring_infos=monitoring_infos.consolidate(infos))
        splits = [split for _, split_results in results for split in split_results]
        return beam_fn_api_pb2.InstructionResponse(process_bundle=told), splits


class _SparkRunner(SparkRunner):
    """Beam's runner, with a job server that ends with the run.

    Beam keeps the server until exit, and its signal handler waits for ever on a second Ctrl-C.
    """

    _server: SparkJarJobServer | None = None

    def default_job_server(self, options: PipelineOptions) -> SparkJarJobServer:
        self._server = SparkJarJobServer(options)
        return self._server

    def stop(self) -> None:
        if self._server and self._server._server:
            # First the process: it may be deleting the very files that the second call deletes.
            self._server._server.stop()
            self._server.stop()


class _WorkerPool(worker_pool_main.BeamFnExternalWorkerPoolServicer):
    """Starts a worker process when an engine asks for one."""

    def __init__(self, options: str) -> None:
        super().__init__(use_process=True)
        self._options = options

    def StartWorker(self, request: Any, context: object) -> Any:  # noqa: N802
        worker = worker_processes.start(request.control_endpoint.url, request.worker_id, self._options)
        self._worker_processes[request.worker_id] = worker  # type: ignore[assignment]
        return beam_fn_api_pb2.StartWorkerResponse()


@contextlib.contextmanager
def _worker_pool(options: Any) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    pool = _WorkerPool(json_format.MessageToJson(options))
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(grace=0).wait()


@worker_handlers.WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)
class _WorkerProcess(worker_handlers.GrpcWorkerHandler):
    """A worker process of FnApiRunner.

    It takes the place of Beam's own, which waits for ever for a worker that is stuck in native code, is not
    yet connected or has died between two bundles.
    """

    def __init__(self, command: bytes, state: Any, provision_info: Any, grpc_server: Any) -> None:
        super().__init__(state, provision_info, grpc_server)
        self._closed = threading.Event()

    def start_worker(self) -> None:
        options = json_format.MessageToJson(self.provision_info.provision_info.pipeline_options)
        self._process = worker_processes.start(self.control_address, self.worker_id, options)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        error = f"worker process ended, status {self._process.wait()}"
        while not self._closed.wait(timeout=1):
            # Beam's own `abort` is not seen by what waits for the output of a bundle; an answer is.
            for request in [*self.control_conn._futures_by_id.values()]:
                request.set(
                    beam_fn_api_pb2.InstructionResponse(instruction_id=request.instruction_id, error=error)
                )

    def close(self) -> None:
        self._closed.set()
        deadline = threading.Timer(_PATIENCE_SECONDS, worker_processes.end)
        deadline.start()
        try:
            with contextlib.suppress(grpc.RpcError):  # of a worker that is dead
                super().close()
        finally:
            deadline.cancel()

    def stop_worker(self) -> None:
        self._process.wait()


def _encoded(options: PipelineOptions) -> Any:
    given = options.get_all_options(drop_default=True)
    return JobServiceHandle.encode_pipeline_options({"default_sdk_harness_log_level": "WARNING", **given})


def _check_java(launcher: str) -> None:
    java = shutil.which(launcher)
    if java is None:
        raise ConfigError(
            "runner",
            "SparkRunner",
            f"no {launcher!r} on PATH; install Java 17 (Debian: apt-get install openjdk-17-jre-headless)",
        )
    banner = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', banner)
    if version and int(version[1]) > _NEWEST_JAVA:
        raise ConfigError("runner", "SparkRunner", f"{java} is Java {version[1]}; Spark 3 needs 8, 11 or 17")


def _cached_jar() -> str | None:
    """Path of the job server jar; None leaves it to Beam, which downloads one."""
    if given := os.environ.get("CHUNKMILL_SPARK_JAR"):
        if not Path(given).is_file():
            raise ConfigError("CHUNKMILL_SPARK_JAR", given, "no such file")
        return given
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chunkmill"
    jars = sorted(cache.glob("spark-job-server-*.jar"), key=lambda jar: jar.stat().st_mtime)
    return str(jars[-1]) if jars else None
