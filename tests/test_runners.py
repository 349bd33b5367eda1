"""Really runs a tiny pipeline on each engine, and interrupts it."""

import logging
import os
import signal
import textwrap
import time
from pathlib import Path

import pytest
from sessions import processes_of_session, session, wait_until

beam = pytest.importorskip("apache_beam")

from apache_beam.runners.worker import statesampler  # noqa: E402
from apache_beam.utils.counters import CounterFactory  # noqa: E402

from pipelines import runners, worker_processes  # noqa: E402
from pipelines.runners import Distribution, run_pipeline  # noqa: E402
from transforms.errors import ConfigError  # noqa: E402

pytestmark = [
    # Beam leaves the output pipe of its Spark server to the garbage collector,
    pytest.mark.filterwarnings("ignore:unclosed file <_io.BufferedReader:ResourceWarning"),
    # and its readers do not expect that a worker can be killed.
    pytest.mark.filterwarnings("ignore:Exception in thread (beam_control_read|read_grpc_client_inputs)"),
]

ENGINES = {
    "in_memory": ("DirectRunner", 1),
    "multi_processing": ("DirectRunner", 2),
    "spark": ("SparkRunner", 2),
}


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "spark":
        request.getfixturevalue("spark_jar")
    return ENGINES[request.param]


def words_by_letter(folder):
    """A pipeline with the shape of the job: a task list, a shuffle, many outputs, a grouping, files."""
    counted = beam.metrics.metric.Metrics

    # Local, so that workers get them by value: they cannot import this file.
    def split(line):
        counted.counter("test", "words").inc(len(line.split()))
        counted.distribution("test", "length").update(len(line))
        return [(word[0], word) for word in line.split()]

    class Write(beam.DoFn):
        def process(self, group):
            letter, words = group
            target = Path(folder, letter)
            staged = target.with_suffix(f".{os.getpid()}")
            staged.write_text(" ".join(sorted(words)))
            staged.replace(target)

    def build(pipeline):
        lines = [f"a{n} b{n} c{n % 3}" for n in range(20)]
        _ = (
            pipeline
            | beam.Create(lines)
            | beam.Reshuffle()
            | beam.FlatMap(split)
            | beam.GroupByKey()
            | beam.ParDo(Write())
        )

    return build


def test_same_files_and_metrics_on_each_engine(engine, tmp_path):
    runner, workers = engine

    result = run_pipeline(words_by_letter(tmp_path), runner=runner, workers=workers)

    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "a": " ".join(sorted(f"a{n}" for n in range(20))),
        "b": " ".join(sorted(f"b{n}" for n in range(20))),
        "c": " ".join(sorted(f"c{n % 3}" for n in range(20))),
    }
    assert result.state == "DONE"
    assert result.counters == {"test/words": 60}
    assert result.distributions == {"test/length": Distribution(20, 180, 8, 10)}


def test_worker_that_is_done_takes_what_another_would_be_late_with(tmp_path):
    def work(number):
        if number:
            Path(tmp_path, str(number)).touch()
        deadline = time.monotonic() + 60
        while not number and len([*tmp_path.iterdir()]) < 7:
            assert time.monotonic() < deadline, "what is left waits for this one"

    run_pipeline(
        lambda p: p | beam.Create(range(8)) | beam.Reshuffle() | beam.Map(work),
        runner="DirectRunner",
        workers=2,
    )


def test_the_end_of_a_step_is_not_waited_for():
    assert statesampler.StateSampler("step", CounterFactory()).sampling_period_ms <= 10


def test_error_of_a_dofn_reaches_the_launcher(engine):
    def fail(number):
        raise ValueError(f"cannot do {number}")

    runner, workers = engine
    with pytest.raises((ValueError, RuntimeError), match="cannot do 7"):
        run_pipeline(lambda p: p | beam.Create([7]) | beam.Map(fail), runner=runner, workers=workers)


def test_error_of_a_dofn_is_no_config_error_on_another_runner():
    with pytest.raises(ValueError, match="cannot do 7") as raised:
        run_pipeline(
            lambda p: p | beam.Create([7]) | beam.Map(no_number), runner="BundleBasedDirectRunner", workers=1
        )
    assert not isinstance(raised.value, ConfigError)


def no_number(number):
    raise ValueError(f"cannot do {number}")


INTERRUPTED = """
    import re, sys
    from pathlib import Path
    import apache_beam as beam
    from pipelines.runners import run_pipeline

    def main(runner, workers, started):
        def work(number):
            Path(started).touch()
            re.match(r"(a+)+b", "a" * 99)  # as good as for ever, in native code

        run_pipeline(
            lambda p: p | beam.Create(range(4)) | beam.Reshuffle() | beam.Map(work),
            runner=runner,
            workers=int(workers),
        )

    main(*sys.argv[1:])
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("engine", "stop"),
    [
        ("in_memory", signal.SIGINT),
        ("multi_processing", signal.SIGINT),
        ("spark", signal.SIGINT),
        ("spark", signal.SIGTERM),
    ],
    indirect=["engine"],
)
def test_interrupted_run_ends_soon_and_leaves_no_process(engine, stop, tmp_path):
    runner, workers = engine
    script, started = tmp_path / "script.py", tmp_path / "started"
    script.write_text(textwrap.dedent(INTERRUPTED))
    with session(script, runner, workers, started) as launcher:
        wait_until(started.exists, seconds=150)
        # Only the launcher: a terminal would tell its children too, which makes it easier.
        launcher.send_signal(stop)
        _, errors = launcher.communicate(timeout=60)
        assert launcher.returncode in (-stop, 128 + stop), errors.decode()
        assert processes_of_session(launcher.pid) == []


def test_dead_worker_is_named_and_does_not_hang():
    def die(number):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match=r"worker process ended, status .*-9"):
        run_pipeline(
            lambda p: p | beam.Create(range(4)) | beam.Reshuffle() | beam.Map(die),
            runner="DirectRunner",
            workers=2,
        )


def test_worker_that_dies_before_it_is_connected_is_named_and_does_not_hang(monkeypatch):
    monkeypatch.setattr(
        worker_processes, "_PROGRAM", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )

    with pytest.raises(RuntimeError, match=r"worker process ended, status .*-9"):
        run_pipeline(
            lambda p: p | beam.Create([1, 2]) | beam.Reshuffle() | beam.WithKeys(0) | beam.GroupByKey(),
            runner="DirectRunner",
            workers=2,
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_args": ["--direct_running_mode=multi_threading"]}, "direct_running_mode='multi_threading'"),
        ({"beam_args": ["--direct_num_workers=3"], "workers": 2}, "direct_num_workers=3"),
        ({"beam_args": ["--direct_num_worker=3"]}, "Beam has no such options"),
        ({"workers": 0}, "workers=0"),
        ({"runner": "NoSuchRunner"}, "runner='NoSuchRunner'"),
        ({"runner": "SparkRunner", "beam_args": ["--job_server_java_launcher=no-java"]}, "'no-java' on PATH"),
    ],
)
def test_refuses(settings, message):
    with pytest.raises(ConfigError, match=message):
        run_pipeline(lambda p: p, **{"runner": "DirectRunner"} | settings)


def test_refuses_java_that_spark_cannot_use(tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\"' >&2\n")
    java.chmod(0o755)

    with pytest.raises(ConfigError, match="Java 25; Spark 3 needs 8, 11 or 17"):
        run_pipeline(lambda p: p, runner="SparkRunner", beam_args=[f"--job_server_java_launcher={java}"])


def test_given_spark_jar_must_exist(monkeypatch, tmp_path):
    monkeypatch.setenv("CHUNKMILL_SPARK_JAR", str(tmp_path / "none.jar"))

    with pytest.raises(ConfigError, match="no such file"):
        runners._cached_jar()


def test_newest_cached_spark_jar_is_taken(monkeypatch, tmp_path):
    monkeypatch.delenv("CHUNKMILL_SPARK_JAR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert runners._cached_jar() is None
    (tmp_path / "chunkmill").mkdir()
    for age, name in enumerate(["spark-job-server-b.jar", "spark-job-server-a.jar"]):
        jar = tmp_path / "chunkmill" / name
        jar.touch()
        os.utime(jar, (age, age))

    assert Path(runners._cached_jar()).name == "spark-job-server-a.jar"


def test_beam_is_quiet_and_we_are_not(caplog):
    logging.getLogger("apache_beam.io").warning("chatter")
    logging.getLogger("transforms.read").warning("news")

    assert caplog.messages == ["news"]
