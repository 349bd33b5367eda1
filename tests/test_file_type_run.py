"""Functions of the user in a run: they reach worker processes by name, and what they may not do costs one document."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("apache_beam")

HANDLERS = """
import os

def paragraphs(document):
    if "explode" in document.text:
        raise RuntimeError("out of paper")
    if "shout" in document.text:
        return [document.text.upper()]
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(f"{os.getpid()}\\n")
    return [piece for piece in document.text.split("\\n\\n") if piece.strip()]
"""


@pytest.mark.timeout(280)
def test_a_handler_of_the_user_cuts_on_worker_processes(tmp_path):
    modules, docs, out = tmp_path / "modules", tmp_path / "docs", tmp_path / "out"
    for folder in (modules, docs / "node_modules"):
        folder.mkdir(parents=True)
    (modules / "harbour_handlers.py").write_text(HANDLERS)
    for number in range(4):
        (docs / f"{number}.txt").write_text(f"Ship {number}.\n\nIt is late.\n\nIt is here.\n")
    (docs / "bad.txt").write_text("explode\n")
    (docs / "loud.txt").write_text("shout\n")
    (docs / "node_modules" / "index.txt").write_text("Nobody reads this.\n")

    command = [sys.executable, "-m", "pipelines.cli", "run", "--input", f"{docs}/**", "--output", str(out)]
    command += [
        "--chunker",
        "file_type",
        "--set",
        "handler=harbour_handlers:paragraphs",
        "--set",
        "version=1",
    ]
    command += ["--workers", "2", "--max_error_rate", "0.9"]
    paths = os.pathsep.join([str(modules), str(Path(__file__).parent.parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "SEEN": str(tmp_path / "seen")}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0, output

    chunks = pq.read_table(out / "chunks").to_pylist()
    assert {chunk["text"] for chunk in chunks} == {f"Ship {n}." for n in range(4)} | {
        "It is late.",
        "It is here.",
    }
    assert len(chunks) == 12
    letters = {Path(row["source_uri"]).name: row for row in pq.read_table(out / "dead_letters").to_pylist()}
    assert {name: (row["stage"], row["reason"]) for name, row in letters.items()} == {
        "bad.txt": ("chunk", "handler"),
        "loud.txt": ("chunk", "handler"),
    }
    assert "harbour_handlers:paragraphs raised RuntimeError: out of paper" in letters["bad.txt"]["message"]
    assert "which is no slice" in letters["loud.txt"]["message"]
    ledger = {Path(row["source_uri"]).name: row for row in pq.read_table(out / "documents").to_pylist()}
    assert (ledger["index.txt"]["status"], ledger["index.txt"]["reason"]) == (
        "skipped",
        "skip rule node_modules/",
    )
    seen = set((tmp_path / "seen").read_text().split())
    assert seen, "the handler ran"
    assert str(process.pid) not in seen


def test_a_run_with_a_function_that_cannot_be_imported_does_not_start(tmp_path):
    (tmp_path / "a.txt").write_text("Text.\n")
    command = [
        sys.executable,
        "-m",
        "pipelines.cli",
        "run",
        "--input",
        f"{tmp_path}/a.txt",
        "--output",
        f"{tmp_path}/out",
    ]
    command += ["--chunker", "file_type", "--set", "handler=nowhere:f"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    process = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 2
    assert "handler='nowhere:f': cannot be imported: ModuleNotFoundError" in process.stderr
    assert not (tmp_path / "out").exists()
