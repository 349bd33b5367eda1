"""Whatever breaks a run off: readers see the old table or the new one, and the same run finishes it."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("apache_beam")

from faults import MODES, in_folder, in_manifest

from pipelines import worker_processes
from pipelines.cli import main as chunkmill

SCRIPT = Path(__file__).with_name("faults.py")


# In a process of its own, since it forks.
def broken_off(fault, mode, runs):
    """What breaking off some runs printed, and whether all went well."""
    command = [sys.executable, SCRIPT, "--faults", fault, "--modes", mode, "--runs", str(runs)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", ["launcher killed", "launcher killed in the commit"])
def test_a_run_that_is_killed_at_any_moment_leaves_a_whole_table_and_is_finished_by_a_rerun(fault, mode):
    status, printed = broken_off(fault, mode, 4)
    assert status == 0, printed


@pytest.mark.parametrize(
    ("fault", "mode", "runs"),
    [
        ("worker killed", "overwrite", 1),
        *((fault, mode, 2) for fault in ("disk full", "clock off") for mode in MODES),
    ],
)
def test_a_run_survives(fault, mode, runs):
    status, printed = broken_off(fault, mode, runs)
    assert status == 0, printed


# What a worker of Spark does at its start: each shard fails once, when its files are written.
FAILING = """
from pathlib import Path
import transforms.write

write_shard = transforms.write.write_shard


def failing_once(shard, *settings):
    entries = write_shard(shard, *settings)
    try:
        Path({folder!r}, str(shard)).touch(exist_ok=False)
    except FileExistsError:
        return entries
    raise RuntimeError("the task fails once its files are written")


transforms.write.write_shard = failing_once
"""


@pytest.mark.filterwarnings("ignore:unclosed file <_io.BufferedReader:ResourceWarning")  # Beam's job server
@pytest.mark.usefixtures("spark_jar")
def test_a_task_of_spark_that_fails_is_tried_again_and_writes_no_row_twice(tmp_path, monkeypatch):
    docs, failed = tmp_path / "in", tmp_path / "failed"
    docs.mkdir()
    failed.mkdir()
    for number in range(12):
        (docs / f"{number}.txt").write_text(f"Ship {number} is in port. " * 40)
    program = FAILING.format(folder=str(failed)) + worker_processes._PROGRAM
    monkeypatch.setattr(worker_processes, "_PROGRAM", program)
    command = ["run", "--input", str(docs), "--tokenizer", "character", "--chunk_size", "80", "--shards", "3"]

    assert chunkmill([*command, "--output", str(tmp_path / "out"), "--runner", "SparkRunner"]) == 0

    assert len([*failed.iterdir()]) == 3
    assert chunkmill([*command, "--output", str(tmp_path / "calm")]) == 0
    assert in_folder(tmp_path / "out") == in_manifest(tmp_path / "out") == in_folder(tmp_path / "calm")
    assert not [path for path in (tmp_path / "out/control/staging").rglob("*") if path.is_file()]
    gc.collect()
