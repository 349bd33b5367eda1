"""Earlier states of a table, and their end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipelines import read_table
from pipelines.cli import main
from transforms.errors import ConfigError


def run(docs: Path, output: Path, *flags: str) -> None:
    patterns = f"{docs}/*.txt"
    arguments = ["--chunker", "token", "--tokenizer", "character", "--chunk_size", "40", *flags]
    assert main(["run", "--input", patterns, "--output", str(output), *arguments]) == 0


@pytest.fixture
def table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A table whose only document was changed and cut again, beside what others put there."""
    docs, output = tmp_path / "docs", tmp_path / "table"
    docs.mkdir()
    for time_, text in enumerate(("The old text.", "The new text."), 1_000):
        (docs / "a.txt").write_text(text)
        os.utime(docs / "a.txt", (time_, time_))
        run(docs, output)
    capsys.readouterr()
    return output


def texts(table: Path, at: int | str | None = None) -> list[str]:
    return sorted(read_table(str(table), at).to_table(columns=["text"])["text"].to_pylist())


def test_a_table_is_read_as_it_is_and_as_it_was_after_each_commit(table: Path) -> None:
    assert texts(table) == texts(table, 2) == ["The new text."]
    assert texts(table, 1) == ["The old text."]


def test_a_run_is_named_by_its_id_too(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(table), "--format", "json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["seq"], second["seq"]) == (1, 2)
    # The ledger, the chunks, and the ids that came; then those that left too.
    assert [(commit["added"], commit["removed"]) for commit in (first, second)] == [(3, 0), (4, 2)]
    assert texts(table, first["run_id"]) == ["The old text."]
    assert main(["history", str(table)]) == 0
    assert second["run_id"] in capsys.readouterr().out.splitlines()[1]


def test_only_the_current_files_lie_where_a_plain_reader_looks(table: Path) -> None:
    assert len(list((table / "chunks").rglob("*.parquet"))) == 1
    assert len(list((table / "control" / "replaced" / "chunks").rglob("*.parquet"))) == 1


def test_vacuum_removes_what_is_old_enough_and_nothing_that_the_table_needs_or_others_put_there(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = table / "control" / "staging" / "dead" / "part-00000-of-00001.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half a file")
    foreign = table / "chunks" / "README.txt"
    foreign.write_text("ours")

    assert main(["vacuum", str(table)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["vacuum", str(table), "--older_than", "0", "--dry_run"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert str(left.relative_to(table)) in told
    assert left.exists()
    assert texts(table, 1) == ["The old text."]

    assert main(["vacuum", str(table), "--older_than", "0"]) == 0
    assert capsys.readouterr().out.splitlines() == told
    assert not left.exists()
    foreign.unlink()
    assert not list((table / "control" / "replaced").rglob("*.parquet"))
    assert texts(table) == ["The new text."]
    with pytest.raises(ConfigError, match="vacuum"):
        texts(table, 1)
    assert main(["verify", str(table)]) == 0


def test_a_file_that_comes_back_is_read_where_it_is(table: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "a.txt").write_text("The old text.")
    os.utime(docs / "a.txt", (1_000, 1_000))
    run(docs, table)
    assert texts(table) == texts(table, 1) == ["The old text."]
    assert texts(table, 2) == ["The new text."]


def test_what_is_no_table_or_no_commit_of_it_is_named(table: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no table"):
        read_table(str(tmp_path / "docs"))
    for at in (0, 3, "no such run"):
        with pytest.raises(ConfigError, match="the commits 1 to 2"):
            read_table(str(table), at)
    assert main(["history", str(tmp_path / "docs")]) == 2
    assert main(["vacuum", str(tmp_path / "docs")]) == 2
