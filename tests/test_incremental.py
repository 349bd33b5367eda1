"""Incremental runs: what is read, what is written anew, what leaves, and what stays to the last byte."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem

from pipelines import chunk_corpus, read_table
from pipelines.cli import main
from pipelines.options import run_settings
from transforms import parsers, sources
from transforms.commit import commit
from transforms.errors import CommitError, ConfigError, DocumentError
from transforms.incremental import write_retired
from transforms.kept import kept_rows
from transforms.packs import Pack, PackBuilder
from transforms.parsers import Parser
from transforms.records import DeadLetter, DocumentChunks, dead_letter
from transforms.run_report import Report
from transforms.shards import write_shard
from transforms.sources import match
from transforms.table import Table
from transforms.verify import verify

SHARDS = 4
NAMES = [f"{name}.txt" for name in ("ash", "beech", "cedar", "elm", "fir", "oak", "pine", "yew")]


class Corpus:
    """Files that change, and a table that follows them.

    Args:
        root: Folder for both.
    """

    def __init__(self, root: Path) -> None:
        self.docs = root / "docs"
        self.docs.mkdir()
        self.output = root / "table"
        self._clock = 1_000

    def write(self, name: str, text: str | bytes) -> None:
        """A file, changed later than all before."""
        path = self.docs / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.touch(name)

    def write_rows(self, name: str, **texts: str) -> None:
        """A Parquet file with a row for each text."""
        pq.write_table(pa.table({"document_id": list(texts), "text": list(texts.values())}), self.docs / name)
        self.touch(name)

    def touch(self, name: str) -> None:
        self._clock += 1
        os.utime(self.docs / name, (self._clock, self._clock))

    def job(self, **flags: Any) -> chunk_corpus.Job:
        """A run that is ready."""
        settings = {
            "input": [f"{self.docs}/**"],
            "output": str(self.output),
            "chunker": "token",
            "tokenizer": "character",
            "chunk_size": 20,
            "shards": SHARDS,
            **flags,
        }
        return chunk_corpus.prepare(run_settings(settings))

    def run(self, **flags: Any) -> Report:
        """The report of a run, whose stages follow each other here and now."""
        return run_here(self.job(**flags))

    def run_pipeline(self, **flags: Any) -> Report:
        """The report of a run by Beam."""
        report = chunk_corpus.run(self.job(**flags))
        assert report
        return report

    def to_read(self, **flags: Any) -> list[str]:
        """Names of the files that a run would read."""
        return [Path(file.uri).name for file in self.job(**flags).files]

    def rows(self, kind: str = "chunks") -> list[dict[str, Any]]:
        """All rows of a kind, as the manifests name them."""
        files = [
            self.output / path for path, entry in Table(str(self.output)).files.items() if entry.kind == kind
        ]
        return [row for file in sorted(files) for row in pq.ParquetFile(file).read().to_pylist()]

    def texts(self) -> dict[str, str]:
        """The text of each document by the name of its file, or its id."""
        texts: dict[str, str] = {}
        for row in sorted(self.rows(), key=lambda row: (row["document_id"], row["chunk_index"])):
            uri = row["source_uri"]
            name = row["document_id"] if uri.endswith(".parquet") else Path(uri).name
            texts[name] = texts.get(name, "") + row["text"]
        return texts

    def states(self) -> Counter[str]:
        return Counter(row["status"] for row in self.rows("documents"))

    def check(self) -> None:
        """The table is sound, and a plain reader of its folder sees what the manifests say."""
        assert verify(str(self.output), match([f"{self.docs}/**"])).ok
        assert {str(p.relative_to(self.output)) for p in (self.output / "chunks").rglob("*.parquet")} == {
            path for path in Table(str(self.output)).files if path.startswith("chunks/")
        }


def run_here(job: chunk_corpus.Job) -> Report:
    """What the pipeline of a job does, without Beam."""
    settings, run, output = job.settings, job.run, job.settings.job.output
    builder = PackBuilder(run)
    packs: list[Pack] = []
    for file in job.files:
        for task in sources.plan(file, settings.read):
            for item in [task] if isinstance(task, DeadLetter) else sources.read(task, settings.read):
                cut: DocumentChunks | DeadLetter
                if isinstance(item, DeadLetter):
                    cut = item
                else:
                    try:
                        cut = settings.chunking.chunk_document(parsers.parse(item, settings.parse))
                    except DocumentError as error:
                        cut = dead_letter(item, error)
                packs += builder.add(cut)
    packs += builder.flush()
    if job.plan:
        write_retired(output, run, job.plan.retired)
    retired = run.increment.retired_shards if run.increment else ()
    entries = []
    for shard in sorted({*retired, *(shard for shard, _ in packs)}):
        own = [pack for of, pack in packs if of == shard]
        kept = kept_rows(output, run, shard)
        entries += write_shard(shard, own, run, output, settings.chunker.record, kept=kept)
    return commit(entries, run, output, [chunker.record for chunker in settings.chunking.chunkers])


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A table of eight files with a document each, and of one with three."""
    corpus = Corpus(tmp_path)
    for name in NAMES:
        corpus.write(name, f"This is all that there is to say about the {name[:-4]}.")
    corpus.write_rows(
        "birds.parquet", crow="The crow is black.", gull="The gull is grey.", wren="The wren is small."
    )
    corpus.run()
    return corpus


@pytest.fixture
def opened(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the inputs that are opened from now on, one for each time."""
    names: list[str] = []
    real = LocalFileSystem._open

    def spying(self: LocalFileSystem, path: str, *args: Any, **options: Any) -> Any:
        if path.startswith(str(corpus.docs)):
            names.append(Path(path).name)
        return real(self, path, *args, **options)

    monkeypatch.setattr(LocalFileSystem, "_open", spying)
    return names


# What is read.


def test_a_run_with_nothing_to_do_opens_no_input_and_changes_nothing(
    corpus: Corpus, opened: list[str]
) -> None:
    before = tree(corpus.output)
    report = corpus.run_pipeline()
    assert opened == []
    assert tree(corpus.output) == before
    assert (report["outcome"], report["sources"]) == ("unchanged", {"unchanged": 9})
    assert (report["documents"]["in"], report["documents_kept"]) == (0, 11)


@pytest.mark.parametrize("beam", [False, True])
def test_only_new_and_changed_files_are_opened(corpus: Corpus, opened: list[str], beam: bool) -> None:
    corpus.write("ash.txt", "Ashes to ashes.")
    corpus.write("willow.txt", "Weeping.")
    report = corpus.run_pipeline() if beam else corpus.run()
    assert set(opened) == {"ash.txt", "willow.txt"}
    assert report["sources"] == {"changed": 1, "new": 1, "unchanged": 8}
    assert (report["documents"]["in"], report["documents_kept"]) == (2, 10)
    assert (corpus.texts()["ash.txt"], corpus.texts()["willow.txt"]) == ("Ashes to ashes.", "Weeping.")
    corpus.check()


def test_a_table_of_documents_is_opened_only_if_it_changed(corpus: Corpus, opened: list[str]) -> None:
    corpus.write("ash.txt", "Ashes to ashes.")
    corpus.run()
    assert "birds.parquet" not in opened
    corpus.write_rows(
        "birds.parquet", crow="The crow is black.", gull="The gull is white.", rook="The rook is new."
    )
    report = corpus.run()
    assert report["sources"] == {"changed": 1, "unchanged": 8}
    texts = corpus.texts()
    assert (texts["gull"], texts["rook"], "wren" in texts) == (
        "The gull is white.",
        "The rook is new.",
        False,
    )
    corpus.check()


def test_rows_with_addresses_of_their_own_belong_to_the_file_that_held_them(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)

    def write(*names: str) -> None:
        rows = {
            "uri": [f"https://example.org/{name}" for name in names],
            "text": [f"About {n}." for n in names],
        }
        pq.write_table(pa.table({"document_id": list(names), **rows}), corpus.docs / "web.parquet")
        corpus.touch("web.parquet")

    write("a", "b")
    corpus.run()
    assert corpus.to_read() == []
    write("b", "c")
    corpus.run()
    assert sorted(row["document_id"] for row in corpus.rows()) == ["b", "c"]
    (corpus.docs / "web.parquet").rename(corpus.docs / "more.parquet")
    assert corpus.run(cleanup="full", max_vanished=1)["sources"] == {"new": 1, "retired": 1}
    assert sorted(row["document_id"] for row in corpus.rows()) == ["b", "c"]
    corpus.check()


@pytest.mark.parametrize(
    ("flags", "reads"),
    [
        ({"run_time": "2024-01-01"}, False),
        ({"compat": True}, False),
        ({"job_id": "nightly"}, False),
        ({"task_bytes": 1000}, False),
        ({"workers": 2}, False),
        ({"keep_text": True}, True),
        ({"media_type": "text/markdown"}, True),
        ({"metadata_columns": ["text"]}, True),
        ({"title_column": "text"}, True),
        ({"markdown": False}, True),
        ({"on_undecodable": "fail"}, True),
        ({"chunk_size": 21}, True),
        ({"source_name": "others"}, True),
        ({"rules": [{"source": "*.md", "chunker": "whole"}]}, True),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_settings_that_may_change_rows_have_all_read_again_and_no_others(
    corpus: Corpus, flags: dict[str, Any], reads: bool
) -> None:
    assert len(corpus.to_read(**flags)) == (9 if reads else 0)


def test_a_parser_of_another_version_has_its_documents_read_again(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.write("guide.md", "# Trees")
    corpus.run()
    markdown = parsers.PARSERS["text/markdown"]
    monkeypatch.setitem(parsers.PARSERS, "text/markdown", Parser("markdown", "next", markdown.read))
    assert corpus.to_read() == ["guide.md"]


def test_one_run_id_for_runs_with_other_settings_proves_nothing(corpus: Corpus) -> None:
    corpus.run(mode="overwrite", run_id="nightly", markdown=False)
    assert corpus.to_read(markdown=False) == []
    corpus.write("ash.txt", "Ashes.")
    corpus.run(run_id="nightly")
    assert len(corpus.to_read()) == 9


def test_what_the_store_tells_of_a_file_counts_and_its_size_alone_does_not(corpus: Corpus) -> None:
    (file,) = match([str(corpus.docs / "ash.txt")])
    assert file.state
    assert file.state != replace(file, modified_at=1).state
    assert file.state != replace(file, etag="a").state
    assert (
        replace(file, modified_at=None, etag="a").state != replace(file, modified_at=None, version="a").state
    )
    assert replace(file, modified_at=None).state is None


def test_a_mode_is_chosen_by_what_is_there(corpus: Corpus, tmp_path: Path) -> None:
    assert corpus.job().run.mode == "incremental"
    other = str(tmp_path / "other")
    assert corpus.job(output=other).run.mode == "overwrite"
    assert corpus.job(mode="overwrite").run.mode == "overwrite"
    corpus.run(output=other, mode="incremental")
    assert Table(other).last["mode"] == "incremental"  # type: ignore[index]
    assert sum(entry.rows for entry in Table(other).files.values() if entry.kind == "chunks") == len(
        corpus.rows()
    )


# What is written.


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_shard_that_nothing_touched_keeps_its_files(corpus: Corpus) -> None:
    before = Table(str(corpus.output)).files
    corpus.write("ash.txt", "Ashes to ashes.")
    report = corpus.run()
    after = Table(str(corpus.output)).files
    touched = {entry.shard for path, entry in after.items() if path not in before}
    assert len(touched) == 1
    assert before.keys() - after.keys() == {
        path for path, entry in before.items() if entry.shard in touched and entry.kind != "changes"
    }
    assert report["replaced_files"] == 2


def test_rows_of_other_files_are_carried_over_as_they_are(corpus: Corpus) -> None:
    before = {row["chunk_id"]: row for row in corpus.rows()}
    ledger = {row["document_id"]: row for row in corpus.rows("documents")}
    for name in NAMES[:4]:
        corpus.write(name, "Another text.")
    report = corpus.run(job_id="second")
    changed = {str(corpus.docs / name) for name in NAMES[:4]}
    rows = corpus.rows()
    assert {row["chunk_id"]: row for row in rows if row["source_uri"] not in changed} == {
        chunk_id: row for chunk_id, row in before.items() if row["source_uri"] not in changed
    }
    assert {row["job_id"] for row in rows if row["source_uri"] in changed} == {"second"}
    assert {r["document_id"]: r for r in corpus.rows("documents") if r["source_uri"] not in changed} == {
        document_id: row for document_id, row in ledger.items() if row["source_uri"] not in changed
    }
    assert (report["documents"]["in"], report["chunks"], report["characters"]) == (
        4,
        4,
        4 * len("Another text."),
    )
    corpus.check()


def test_an_unchanged_chunk_of_a_changed_document_keeps_its_id_and_neither_left_nor_came(
    corpus: Corpus,
) -> None:
    corpus.write("ash.txt", "0123456789abcdefghi " + "The second chunk is. " + "third")
    corpus.run()
    before = {row["chunk_id"]: row["text"] for row in corpus.rows() if row["source_uri"].endswith("ash.txt")}
    corpus.write("ash.txt", "0123456789abcdefghi " + "The SECOND chunk is. " + "third")
    report = corpus.run()
    after = {row["chunk_id"]: row["text"] for row in corpus.rows() if row["source_uri"].endswith("ash.txt")}
    deletes, changes = (
        ids_of(corpus, kind, Table(str(corpus.output)).seq) for kind in ("deletes", "changes")
    )
    assert deletes == before.keys() - after.keys()
    assert changes == after.keys() - before.keys()
    assert before.keys() & after.keys()
    assert (report["files"]["deletes"]["rows"], report["files"]["changes"]["rows"]) == (
        len(deletes),
        len(changes),
    )


def test_a_file_that_was_only_touched_is_cut_again_and_no_id_leaves(corpus: Corpus) -> None:
    corpus.touch("ash.txt")
    assert corpus.run()["sources"] == {"changed": 1, "unchanged": 8}
    seq = Table(str(corpus.output)).seq
    assert (ids_of(corpus, "deletes", seq), ids_of(corpus, "changes", seq)) == (set(), set())
    corpus.check()


def test_the_same_changes_give_the_same_bytes_with_workers(tmp_path: Path) -> None:
    trees = []
    for number, flags in enumerate(({}, {"workers": 2})):
        root = tmp_path / "here"
        root.mkdir()
        corpus = Corpus(root)
        for name in NAMES:
            corpus.write(name, f"About the {name}.")
        corpus.run()
        corpus.write("oak.txt", "Another text.")
        (corpus.docs / "fir.txt").unlink()
        corpus.run_pipeline(cleanup="full", run_id="second", **flags)
        trees.append(
            {path: data for path, data in tree(corpus.output).items() if not path.startswith("control/")}
        )
        root.rename(tmp_path / str(number))
    assert trees[0] == trees[1]


def test_documents_that_move_to_another_folder_leave_the_first(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)

    def write(**languages: str) -> None:
        facts = {"text": [f"About {name}." for name in languages], "language": list(languages.values())}
        pq.write_table(pa.table({"document_id": list(languages), **facts}), corpus.docs / "rows.parquet")
        corpus.touch("rows.parquet")

    corpus.write("still.txt", "This one stays.")
    write(a="en", b="en", c="de")
    corpus.run(partition_by=["language"])
    write(a="en", b="de", c="fr")
    corpus.run()
    folders = {
        row["document_id"]: Path(path).parent.name
        for path, entry in Table(str(corpus.output)).files.items()
        if entry.kind == "chunks"
        for row in pq.ParquetFile(corpus.output / path).read().to_pylist()
        if len(row["document_id"]) == 1
    }
    assert folders == {"a": "by_language=en", "b": "by_language=de", "c": "by_language=fr"}
    assert (ids_of(corpus, "deletes", 2), ids_of(corpus, "changes", 2)) == (set(), set())
    corpus.check()


def test_a_changed_chunker_gives_a_partition_of_its_own_and_leaves_the_old(corpus: Corpus) -> None:
    before = set(Table(str(corpus.output)).files)
    report = corpus.run(chunk_size=30)
    after = set(Table(str(corpus.output)).files)
    assert before < after
    assert report["sources"] == {"new": 9}
    assert corpus.to_read(chunk_size=30) == corpus.to_read() == []
    assert verify(str(corpus.output)).ok


def test_under_rules_a_document_goes_from_one_chunker_to_another(corpus: Corpus) -> None:
    first = [{"source": "*.txt", "chunker": "whole"}]
    corpus.run(mode="overwrite", rules=first)
    assert corpus.to_read(rules=first) == []
    second = [{"source": "*k.txt", "chunker": "whole"}]
    assert corpus.run(rules=second)["sources"] == {"changed": 9}
    names = {Path(row["source_uri"]).name: row["chunker_name"] for row in corpus.rows()}
    assert {name for name, chunker in names.items() if chunker == "whole"} == {"oak.txt"}
    assert len(names) == 9
    corpus.check()


# What leaves.


def remove(corpus: Corpus, *names: str) -> None:
    for name in names:
        (corpus.docs / name).unlink()


def test_a_vanished_file_stays_unless_it_is_to_be_cleaned_up(corpus: Corpus) -> None:
    remove(corpus, "oak.txt", "yew.txt")
    for cleanup in ("incremental", "none"):
        report = corpus.run(cleanup=cleanup)
        assert (report["sources"], report["documents_kept"]) == ({"unchanged": 7, "vanished": 2}, 11)
    assert "oak.txt" in corpus.texts()
    report = corpus.run(cleanup="full")
    assert report["sources"] == {"retired": 2, "unchanged": 7}
    assert (report["documents_kept"], report["documents_deleted"]) == (9, 2)
    assert not corpus.texts().keys() & {"oak.txt", "yew.txt"}
    assert corpus.states() == {"ok": 9, "deleted": 2}
    corpus.check()
    assert corpus.run(cleanup="full")["outcome"] == "unchanged"


def test_a_deleted_document_is_told_of_by_the_ledger_until_it_comes_back(corpus: Corpus) -> None:
    text = (corpus.docs / "oak.txt").read_text()
    remove(corpus, "oak.txt")
    run = corpus.run(cleanup="full")
    (row,) = (row for row in corpus.rows("documents") if row["status"] == "deleted")
    assert (Path(row["source_uri"]).name, row["reason"], row["run_id"]) == (
        "oak.txt",
        "retired",
        run["run_id"],
    )
    assert (row["chunk_count"], row["token_count"], row["char_count"], row["text"]) == (0, 0, None, None)
    for name in NAMES[:4]:
        corpus.write(name, "Another text.")
    corpus.run()
    assert [r for r in corpus.rows("documents") if r["status"] == "deleted"] == [row]
    corpus.write("oak.txt", text)
    assert corpus.run()["sources"] == {"new": 1, "unchanged": 8}
    assert corpus.states() == {"ok": 11}
    corpus.check()


def test_changed_files_are_left_and_new_ones_added_if_nothing_is_to_be_cleaned_up(corpus: Corpus) -> None:
    corpus.write("oak.txt", "Another text.")
    corpus.write("willow.txt", "Weeping.")
    report = corpus.run(cleanup="none")
    assert report["sources"] == {"left": 1, "new": 1, "unchanged": 8}
    assert (corpus.texts()["oak.txt"][:8], corpus.texts()["willow.txt"]) == ("This is ", "Weeping.")
    assert corpus.run()["sources"] == {"changed": 1, "unchanged": 9}


def test_a_scoped_cleanup_takes_only_what_the_inputs_would_name(corpus: Corpus) -> None:
    remove(corpus, "oak.txt", "yew.txt", "birds.parquet")
    named = [f"{corpus.docs}/o*.txt", f"{corpus.docs}/yew.txt", f"{corpus.docs}/a*"]
    report = corpus.run(input=named, cleanup="scoped_full", allow_empty=True)
    assert report["sources"] == {"retired": 2, "unchanged": 1, "vanished": 6}
    texts = corpus.texts()
    assert ("oak.txt" in texts, "yew.txt" in texts, "crow" in texts) == (False, False, True)


@pytest.mark.parametrize("cleanup", ["full", "scoped_full"])
def test_a_run_that_would_empty_the_table_is_refused(
    corpus: Corpus, cleanup: str, capsys: pytest.CaptureFixture[str]
) -> None:
    remove(corpus, *NAMES[:6])
    before = tree(corpus.output)
    with pytest.raises(ConfigError, match=r"max_vanished=0.5: 6 of 11 documents would go"):
        corpus.job(cleanup=cleanup)
    flags = ["--chunker", "token", "--tokenizer", "character", "--chunk_size", "20", "--cleanup", cleanup]
    assert main(["run", "--input", f"{corpus.docs}/**", "--output", str(corpus.output), *flags]) == 2
    assert "6 of 11 documents would go" in capsys.readouterr().err
    assert tree(corpus.output) == before
    assert corpus.run(cleanup=cleanup, max_vanished=0.6)["documents_deleted"] == 6


def test_what_no_run_listed_is_nobodys_to_clean_up(corpus: Corpus) -> None:
    elsewhere = corpus.docs.with_name("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "kelp.txt").write_text("Kelp is no tree.")
    corpus.run(source_name="others", input=[str(elsewhere)])
    remove(corpus, "ash.txt")
    report = corpus.run(cleanup="full")
    assert report["sources"] == {"retired": 1, "unchanged": 8}
    assert corpus.texts()["kelp.txt"] == "Kelp is no tree."
    assert verify(str(corpus.output)).ok


def test_a_table_may_lose_all_that_it_holds(corpus: Corpus) -> None:
    remove(corpus, *NAMES, "birds.parquet")
    report = corpus.run(cleanup="full", max_vanished=1, allow_empty=True)
    assert report["documents_deleted"] == 11
    assert read_table(str(corpus.output)).count_rows() == 0
    corpus.write("ash.txt", "Ashes.")
    corpus.run()
    assert corpus.texts() == {"ash.txt": "Ashes."}
    corpus.check()


# What failed.


def test_files_with_dead_letters_are_read_again(corpus: Corpus) -> None:
    corpus.write("photo.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    assert corpus.run()["documents"]["failed"] == 1
    report = corpus.run(cleanup="none")
    assert report["sources"] == {"retried": 1, "unchanged": 9}
    assert report["outcome"] == "committed"
    assert [row["run_id"] for row in corpus.rows("dead_letters")] == [report["run_id"]]
    assert corpus.run(cleanup="none")["outcome"] == "unchanged"
    corpus.write("photo.txt", "A letter after all.")
    corpus.run()
    assert corpus.texts()["photo.txt"] == "A letter after all."
    assert (corpus.rows("dead_letters"), corpus.states()) == ([], {"ok": 12})
    corpus.check()


def test_a_document_that_fails_leaves_the_table_and_comes_back(corpus: Corpus) -> None:
    corpus.write("oak.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    corpus.run()
    assert "oak.txt" not in corpus.texts()
    assert corpus.states() == {"ok": 10, "deleted": 1, "failed": 1}
    corpus.check()
    corpus.write("oak.txt", "Oak.")
    corpus.run()
    assert (corpus.texts()["oak.txt"], corpus.states()) == ("Oak.", {"ok": 11})
    corpus.check()


def test_only_what_failed_is_read_on_request(corpus: Corpus, opened: list[str]) -> None:
    corpus.write("photo.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    corpus.run()
    corpus.write("photo.txt", "A letter after all.")
    corpus.write("ash.txt", "Ashes.")
    corpus.write("willow.txt", "Weeping.")
    remove(corpus, "oak.txt")
    opened.clear()
    report = corpus.run(only_failed=True, cleanup="full")
    assert set(opened) == {"photo.txt"}
    assert report["sources"] == {"left": 2, "retried": 1, "unchanged": 7, "vanished": 1}
    assert corpus.texts()["photo.txt"] == "A letter after all."
    assert "oak.txt" in corpus.texts()


@pytest.mark.parametrize("flags", [{"mode": "overwrite"}, {"mode": "append"}, {"output": "nothing"}])
def test_a_run_that_could_not_tell_what_failed_is_refused(
    corpus: Corpus, tmp_path: Path, flags: dict[str, str]
) -> None:
    if "output" in flags:
        flags = {"output": str(tmp_path / "nothing")}
    with pytest.raises(ConfigError, match="only_failed=True"):
        corpus.job(only_failed=True, **flags)


def test_documents_that_are_kept_count_in_the_share_that_may_fail(
    corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus.write("photo.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    flags = ["--chunker", "token", "--tokenizer", "character", "--chunk_size", "20"]
    run = ["run", "--input", f"{corpus.docs}/**", "--output", str(corpus.output), *flags]
    assert main([*run, "--max_error_rate", "0.09"]) == 0
    assert main([*run, "--max_error_rate", "0.07"]) == 3
    assert "1 of 12 documents failed" in capsys.readouterr().err


# Ids that two documents claim.


def test_an_id_that_an_unchanged_file_holds_is_refused_to_another_for_good(corpus: Corpus) -> None:
    corpus.write_rows("a.parquet", crow="Another crow.")
    for _ in range(2):
        report = corpus.run()
        assert report["documents"]["failed"] == 1
        assert corpus.texts()["crow"] == "The crow is black."
    assert "give every document an id of its own" in corpus.rows("dead_letters")[0]["message"]
    corpus.check()
    remove(corpus, "birds.parquet")
    corpus.run(cleanup="full")
    assert corpus.texts()["crow"] == "Another crow."
    assert (corpus.rows("dead_letters"), corpus.states()) == ([], {"ok": 9, "deleted": 2})
    corpus.check()


def test_an_id_may_go_from_one_file_to_another_in_one_run(corpus: Corpus) -> None:
    corpus.write_rows("birds.parquet", gull="The gull is grey.", wren="The wren is small.")
    corpus.write_rows("crows.parquet", crow="The crow is black.")
    corpus.run()
    assert (corpus.texts()["crow"], corpus.states()) == ("The crow is black.", {"ok": 11})
    seq = Table(str(corpus.output)).seq
    assert (ids_of(corpus, "deletes", seq), ids_of(corpus, "changes", seq)) == (set(), set())
    corpus.check()


def test_a_document_may_leave_one_data_set_and_come_with_another(corpus: Corpus) -> None:
    corpus.run()
    os.rename(corpus.docs / "oak.txt", corpus.docs.parent / "oak.txt")
    corpus.run(cleanup="full")
    os.rename(corpus.docs.parent / "oak.txt", corpus.docs / "oak.txt")
    corpus.run(source_name="others", input=[f"{corpus.docs}/oak.txt"])
    assert {row["source_name"] for row in corpus.rows("documents") if row["status"] == "deleted"} == {
        "documents"
    }
    assert {row["source_name"] for row in corpus.rows() if row["source_uri"].endswith("oak.txt")} == {
        "others"
    }
    assert verify(str(corpus.output)).ok


# Those who follow the commits.


def ids_of(corpus: Corpus, kind: str, seq: int) -> set[str]:
    """The ids that a commit says left or came."""
    manifest = Table(str(corpus.output)).manifests[seq - 1]
    paths = [entry["path"] for entry in manifest["added"] if entry["kind"] == kind]
    ids = [row for path in paths for row in pq.ParquetFile(corpus.output / path).read().to_pylist()]
    assert {row["run_id"] for row in ids} <= {manifest["run_id"]}
    assert len({row["chunk_id"] for row in ids}) == len(ids)
    return {row["chunk_id"] for row in ids}


class VectorStore:
    """An index that knows of a table only what its commits say."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._seq = 0
        self.texts: dict[str, str] = {}

    def follow(self) -> None:
        """Apply the commits since the last time, one after the other."""
        for seq in range(self._seq + 1, Table(str(self._corpus.output)).seq + 1):
            table = read_table(str(self._corpus.output), seq).to_table(columns=["chunk_id", "text"])
            texts = dict(zip(table["chunk_id"].to_pylist(), table["text"].to_pylist(), strict=True))
            for chunk_id in ids_of(self._corpus, "deletes", seq):
                del self.texts[chunk_id]
            for chunk_id in ids_of(self._corpus, "changes", seq):
                assert chunk_id not in self.texts
                self.texts[chunk_id] = texts[chunk_id]
            self._seq = seq


def edits(chance: random.Random, corpus: Corpus) -> None:
    """A few changes of the files."""
    there = sorted(path.name for path in corpus.docs.iterdir())
    for _ in range(chance.randint(1, 4)):
        name = chance.choice([*there, f"new{chance.randint(0, 99)}.txt"])
        if name.endswith(".parquet"):
            words = chance.sample("one two three four five six seven eight".split(), 5)
            corpus.write_rows(name, **{f"{name[0]}-{word}": word * chance.randint(1, 9) for word in words})
        elif name in there and len(there) > 3 and chance.random() < 0.4:
            (corpus.docs / name).unlink()
            there.remove(name)
        elif chance.random() < 0.15:
            corpus.write(name, b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
        else:
            corpus.write(name, " ".join(chance.choices("a few words of text that come again".split(), k=20)))


MODES: list[dict[str, Any]] = [
    {"cleanup": "full", "max_vanished": 1},
    {"cleanup": "full", "max_vanished": 1},
    {"cleanup": "incremental"},
    {"cleanup": "scoped_full", "max_vanished": 1},
    {"cleanup": "none"},
    {"only_failed": True},
    {"mode": "overwrite"},
    {"mode": "append"},
]


@pytest.mark.parametrize("seed", [1, 2])
def test_an_index_that_follows_the_commits_equals_one_built_from_scratch(corpus: Corpus, seed: int) -> None:
    chance = random.Random(seed)
    index = VectorStore(corpus)
    for _ in range(6):
        edits(chance, corpus)
        corpus.run(**chance.choice(MODES))
        index.follow()
        rows = corpus.rows()
        assert len({row["chunk_id"] for row in rows}) == len(rows)
        assert index.texts == {row["chunk_id"]: row["text"] for row in rows}
        assert verify(str(corpus.output)).ok
    corpus.run(**MODES[0])
    index.follow()

    scratch = Corpus.__new__(Corpus)
    scratch.__dict__.update(corpus.__dict__, output=corpus.output.with_name("scratch"))
    scratch.run()
    assert index.texts == {row["chunk_id"]: row["text"] for row in scratch.rows()}
    corpus.check()


# The past, and the way back.


def test_earlier_states_can_be_read_and_what_only_they_need_removed(
    corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    first = sorted(row["text"] for row in corpus.rows())
    corpus.write("oak.txt", "Another text.")
    remove(corpus, "yew.txt")
    corpus.run(cleanup="full")
    second = sorted(row["text"] for row in corpus.rows())

    def texts(at: int | None = None) -> list[str]:
        return sorted(read_table(str(corpus.output), at).to_table(columns=["text"])["text"].to_pylist())

    assert (texts(1), texts(2), texts()) == (first, second, second)
    assert main(["history", str(corpus.output), "--format", "json"]) == 0
    assert [json.loads(line)["documents"] for line in capsys.readouterr().out.splitlines()] == [11, 10]
    assert main(["vacuum", str(corpus.output), "--older_than", "0"]) == 0
    assert texts() == second
    assert ids_of(corpus, "changes", 1)
    corpus.check()


def test_the_manifest_and_the_printed_report_tell_of_the_sources(
    corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus.write("oak.txt", "Another text.")
    flags = ["--chunker", "token", "--tokenizer", "character", "--chunk_size", "20"]
    assert main(["run", "--input", f"{corpus.docs}/**", "--output", str(corpus.output), *flags]) == 0
    told = capsys.readouterr().out
    assert "sources    1 changed, 8 unchanged\n" in told
    assert "documents  1: 1 ok\n           10 kept, 0 deleted\n" in told
    assert Table(str(corpus.output)).manifests[-1]["sources"] == {"changed": 1, "unchanged": 8}


# Two at a time, and crashes.


def test_a_run_whose_part_of_the_table_another_run_changed_is_refused(corpus: Corpus) -> None:
    corpus.write("oak.txt", "Another text.")
    slow = corpus.job(run_id="slow")
    corpus.write("ash.txt", "Ashes.")
    corpus.run(run_id="fast")
    before = tree(corpus.output)
    with pytest.raises(CommitError, match="run fast changed the table while run slow was at work"):
        run_here(slow)
    assert tree(corpus.output) == before
    corpus.run(run_id="slow")
    assert corpus.texts()["ash.txt"] == "Ashes."


def test_runs_over_other_data_sets_do_not_disturb_each_other(corpus: Corpus) -> None:
    corpus.write("oak.txt", "Another text.")
    slow = corpus.job(run_id="slow")
    corpus.run(source_name="others", input=[f"{corpus.docs}/oak.txt"], chunk_size=30)
    assert run_here(slow)["outcome"] == "committed"
    assert verify(str(corpus.output)).ok


class KilledError(Exception):
    """The process is gone."""


@pytest.mark.parametrize("step", ["_move", "_publish", "_finish"])
@pytest.mark.parametrize("after", [False, True])
def test_a_run_that_was_killed_while_it_committed_is_finished_by_its_repeat(
    corpus: Corpus, step: str, after: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from transforms import commit as module

    corpus.write("oak.txt", "Another text.")
    remove(corpus, "yew.txt")
    real = getattr(module, step)

    def dies(*arguments: Any) -> None:
        if after:
            real(*arguments)
        raise KilledError

    job = corpus.job(cleanup="full")
    with monkeypatch.context() as patch:
        patch.setattr(module, step, dies)
        with pytest.raises(KilledError):
            run_here(job)
    report = corpus.run(cleanup="full")
    assert "oak.txt" in corpus.texts()
    assert "yew.txt" not in corpus.texts()
    assert Table(str(corpus.output)).seq == 2
    assert not list((corpus.output / "control/staging").rglob("*.*"))
    (stored,) = (r for r in reports(corpus) if r["run_id"] == job.run.run_id)
    assert (stored["outcome"], stored["sources"]) == (
        "committed",
        {"changed": 1, "retired": 1, "unchanged": 7},
    )
    assert report["run_id"] == job.run.run_id
    corpus.check()


def reports(corpus: Corpus) -> Iterator[Report]:
    return (json.loads(path.read_text()) for path in (corpus.output / "control/runs").iterdir())


def test_without_the_list_of_what_is_retired_nothing_is_written(corpus: Corpus) -> None:
    corpus.write("oak.txt", "Another text.")
    job = corpus.job()
    with pytest.raises(CommitError, match="is not staged any more"):
        run_here(replace(job, plan=None))
    assert Table(str(corpus.output)).seq == 1
