"""Further folders of the chunks, by what their documents say."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pipelines import read_table
from pipelines.cli import main
from transforms.errors import ConfigError
from transforms.partitions import check_keys, folder_key, folder_values, partition_values
from transforms.paths import slug
from transforms.table import Table

ODD = {
    "slash": "a/b//c",
    "backslash": "a\\b",
    "percent": "a%2Fb%",
    "other scripts": "日本語 ё",
    "accents": "français",
    "empty": "",
    "null": None,
    "word for null": "null",
    "hive's word for null": "__HIVE_DEFAULT_PARTITION__",
    "very long": "x" * 5000,
    "leading zeros": "007",
    "digits": "7",
    "exponent": "12e45678",
    "date": "2024-01-02",
    "true": "true",
    "up": "..",
    "dot": ".",
    "hidden": "_lang",
    "equals": "by_language=en",
    "case": "EN",
    "plain": "en",
    "white space": " en\n",
}


def command(*arguments: object) -> int | str | None:
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return stop.code


def write_documents(folder: Path, values: Mapping[str, Any], key: str = "language") -> Path:
    """A Parquet file of documents, by their ids the values of a key."""
    folder.mkdir(exist_ok=True)
    rows = [{"document_id": name, "text": f"Tells of {name}.", key: value} for name, value in values.items()]
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{key}.parquet")
    os.utime(folder / f"{key}.parquet", (1_000, 1_000))
    return folder / f"{key}.parquet"


def run(documents: Path | str, output: Path, *flags: object) -> int | str | None:
    settings = ("--chunker", "token", "--tokenizer", "character", "--chunk_size", 40)
    return command("run", "--input", documents, "--output", output, *settings, *flags)


def folders(output: Path, kind: str = "chunks") -> set[str]:
    """The folders of a kind, below those of chunker and source."""
    files = (output / kind).rglob("*.parquet")
    return {"/".join(file.relative_to(output / kind).parts[2:-1]) for file in files}


def told(output: Path, column: str = "language") -> dict[str, Any]:
    """By document the value in a column of the files."""
    table = read_table(str(output)).to_table(columns=["document_id", column])
    return dict(zip(*(table[name].to_pylist() for name in ("document_id", column)), strict=True))


# Keys and values.


@pytest.mark.parametrize(
    ("key", "folder"),
    [("language", "by_language"), ("Pub-Date", "by_pub_date"), ("2nd level.", "by_2nd_level"), ("x", "by_x")],
)
def test_a_key_is_a_plain_name_in_paths(key: str, folder: str) -> None:
    assert folder_key(key) == folder


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["source_uri"], "partition_by='source_uri': name one of title, language"),
        (["metadata"], "key of the documents' metadata"),
        (["acl_labels"], "name one of"),
        (["язык"], "all ASCII"),
        (["-"], "needs letters or digits"),
        (["x" * 61], "at most 60"),
        (["a\nb"], "all ASCII"),
        (["language", "language"], "two keys have the folders by_language="),
        (["pub_date", "Pub-Date"], "two keys have the folders by_pub_date="),
    ],
)
def test_a_key_that_can_be_none_is_refused(keys: Sequence[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_keys(keys)


def test_keys_of_documents_and_of_metadata_pass() -> None:
    check_keys(["title", "language", "media_type", "license", "tenant_id", "date", "team", "Pub-Date"])


def test_values_of_metadata_are_text_as_it_is_and_anything_else_as_json() -> None:
    facts = ["text", "7", 7, 7.5, True, None, ["b", "a"], {"b": 1, "a": 2}, ""]
    metadata = [json.dumps({"key": fact}) for fact in facts] + ["{}", None]
    found = partition_values(pa.table({"metadata": metadata}), "key")
    expected = ["text", "7", "7", "7.5", "true", None, '["b","a"]', '{"a":2,"b":1}', "", None, None]
    assert found == expected


def test_a_column_stands_before_a_key_of_metadata() -> None:
    rows = pa.table({"language": ["en"], "metadata": ['{"language":"de"}']})
    assert partition_values(rows, "language") == ["en"]


# Tables.


def test_odd_values_make_folders_that_readers_give_back_and_stay_in_the_column(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "in", ODD)
    assert run(documents, tmp_path / "out", "--partition_by", "language", "--shards", 2) == 0

    assert told(tmp_path / "out") == ODD
    assert folders(tmp_path / "out") == {f"by_language={slug(value)}" for value in ODD.values()}
    assert folders(tmp_path / "out", "documents") == {""}
    found = ds.dataset(tmp_path / "out" / "chunks", partitioning="hive").to_table()
    assert dict(zip(found["document_id"].to_pylist(), found["by_language"].to_pylist(), strict=True)) == {
        name: slug(value) for name, value in ODD.items()
    }
    assert command("verify", tmp_path / "out", "--input", documents) == 0


@pytest.mark.parametrize("kind", ["map", "struct", "json", "column"])
def test_odd_values_in_the_metadata_of_a_parquet_file_do_too(tmp_path: Path, kind: str) -> None:
    names, values = list(ODD), list(ODD.values())
    columns: dict[str, tuple[str, pa.Array[Any]]] = {
        "map": ("metadata", pa.array([[("team", v)] for v in values], pa.map_(pa.string(), pa.string()))),
        "struct": ("metadata", pa.array([{"team": value} for value in values])),
        "json": ("metadata", pa.array([json.dumps({"team": value}) for value in values])),
        "column": ("team", pa.array(values)),
    }
    name, column = columns[kind]
    texts = [f"Tells of {document}." for document in names]
    table = pa.table({"document_id": names, "text": texts, name: column})
    pq.write_table(table, tmp_path / "in.parquet")
    flags = ["--metadata_columns", "team"] if kind == "column" else []
    assert run(tmp_path / "in.parquet", tmp_path / "out", "--partition_by", "team", *flags) == 0
    assert folders(tmp_path / "out") == {f"by_team={slug(value)}" for value in ODD.values()}
    metadata = {
        name: json.loads(value or "{}").get("team")
        for name, value in told(tmp_path / "out", "metadata").items()
    }
    assert metadata == ODD
    assert command("verify", tmp_path / "out", "--input", tmp_path / "in.parquet", *flags) == 0


@pytest.mark.parametrize(
    "flags",
    [
        ("--partition_by", "language,media_type"),
        ("--partition_by", "language", "--partition_by", " media_type"),
        ("--config", "list"),
        ("--config", "text"),
    ],
)
def test_keys_are_a_list_or_names_with_commas_in_their_order(tmp_path: Path, flags: tuple[str, ...]) -> None:
    documents = write_documents(tmp_path / "in", {"a": "en", "b": "de"})
    (tmp_path / "list").write_text("partition_by: [language, media_type]")
    (tmp_path / "text").write_text("partition_by: language,media_type")
    flags = tuple(str(tmp_path / flag) if flag in ("list", "text") else flag for flag in flags)
    assert run(documents, tmp_path / "out", *flags) == 0
    plain = slug("text/plain")
    assert folders(tmp_path / "out") == {
        f"by_language=en/by_media_type={plain}",
        f"by_language=de/by_media_type={plain}",
    }
    assert Table(str(tmp_path / "out")).partition_by == ("language", "media_type")


def test_two_worker_processes_give_the_files_of_one(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "in", ODD)
    for name, workers in {"one": 1, "two": 2}.items():
        flags = ("--partition_by", "language", "--shards", 3, "--workers", workers)
        assert run(documents, tmp_path / name, *flags) == 0
    one, two = (Table(str(tmp_path / name)).files for name in ("one", "two"))
    assert one == two
    assert len(one) > len(ODD)


def test_a_run_with_nothing_to_cut_leaves_a_file_in_the_folders_of_the_table(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "in", {"a": "en"})
    pq.write_table(pq.read_table(documents)[:0], documents)
    assert run(documents, tmp_path / "out", "--partition_by", "language,team") == 0
    assert folders(tmp_path / "out") == {"by_language=unknown/by_team=unknown"}


# Later runs.


def test_overwriting_replaces_what_the_source_had_in_every_folder(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "in", {"a": "en", "b": "de"})
    assert run(documents, tmp_path / "out", "--partition_by", "language") == 0
    write_documents(tmp_path / "in", {"a": "en", "b": "fr"})
    assert run(documents, tmp_path / "out", "--partition_by", "language", "--mode", "overwrite") == 0
    assert told(tmp_path / "out") == {"a": "en", "b": "fr"}
    assert folders(tmp_path / "out") == {"by_language=en", "by_language=fr"}


def test_a_later_run_keeps_the_keys_of_the_table(tmp_path: Path) -> None:
    first = write_documents(tmp_path / "one", {"a": "en"})
    second = write_documents(tmp_path / "two", {"b": "de"})
    assert run(first, tmp_path / "out", "--partition_by", "language") == 0
    assert run(second, tmp_path / "out", "--mode", "append") == 0
    assert folders(tmp_path / "out") == {"by_language=en", "by_language=de"}
    # A document of the first file, which appending finds in the ledger.
    write_documents(tmp_path / "two", {"a": "fr"})
    assert run(second, tmp_path / "out", "--mode", "append", "--max_error_rate", 1) == 0
    assert told(tmp_path / "out") == {"a": "en", "b": "de"}


@pytest.mark.parametrize("keys", ["media_type", "language,media_type", ""])
def test_appending_by_other_keys_is_refused(
    tmp_path: Path, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = write_documents(tmp_path / "in", {"a": "en"})
    assert run(documents, tmp_path / "out", "--partition_by", "language") == 0
    before = Table(str(tmp_path / "out")).files
    flags = ("--mode", "append", "--source_name", "more", "--partition_by", keys)
    assert run(documents, tmp_path / "out", *flags) == 2
    assert f"partition_by={keys!r}: the table is partitioned by language" in capsys.readouterr().err
    assert Table(str(tmp_path / "out")).files == before


def test_overwriting_all_may_change_the_keys_and_overwriting_a_part_may_not(tmp_path: Path) -> None:
    documents = write_documents(tmp_path / "in", {"a": "en", "b": "de"})
    over = ("--mode", "overwrite")
    assert run(documents, tmp_path / "out") == 0
    assert run(documents, tmp_path / "out", "--partition_by", "language", *over) == 0
    assert folders(tmp_path / "out") == {"by_language=en", "by_language=de"}
    more = write_documents(tmp_path / "more", {"c": "fr"})
    assert run(more, tmp_path / "out", "--source_name", "more") == 0
    assert run(documents, tmp_path / "out", "--partition_by", "media_type", *over) == 2
    assert Table(str(tmp_path / "out")).partition_by == ("language",)

    assert run(documents, tmp_path / "other", "--partition_by", "language") == 0
    assert run(documents, tmp_path / "other", "--partition_by", "") == 2
    assert run(documents, tmp_path / "other", "--partition_by", "", *over) == 0
    assert folders(tmp_path / "other") == {""}
    assert told(tmp_path / "other") == {"a": "en", "b": "de"}


# What is refused.


def test_a_name_that_cannot_be_a_key_is_refused_at_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = write_documents(tmp_path / "in", {"a": "en"})
    assert run(documents, tmp_path / "out", "--partition_by", "chunk_id") == 2
    assert "partition_by='chunk_id': name one of title" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_key_that_no_document_has_fails_before_the_commit(
    workers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = write_documents(tmp_path / "in", {"a": "en"})
    assert run(documents, tmp_path / "out", "--partition_by", "lang", "--workers", workers) == 1
    errors = capsys.readouterr().err
    assert "chunkmill: partition_by='lang': no document's metadata has a value for it" in errors
    assert "Traceback" not in errors
    assert not Table(str(tmp_path / "out")).exists
    assert folders(tmp_path / "out") == set()
    assert run(documents, tmp_path / "out", "--partition_by", "title") == 0
    assert folders(tmp_path / "out") == {"by_title=unknown"}


def test_too_many_values_of_a_key_fail_before_the_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = write_documents(tmp_path / "in", {f"d{number}": f"t{number}" for number in range(1_001)})
    assert run(documents, tmp_path / "out", "--partition_by", "language") == 1
    message = "partition_by='language': there are 1,001 values, and at most 1,000 may be"
    assert message in capsys.readouterr().err
    assert not Table(str(tmp_path / "out")).exists
    assert not [file for file in (tmp_path / "out").rglob("*") if file.is_file()]


def test_appending_counts_the_values_of_the_table_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = write_documents(tmp_path / "in", {f"d{number}": f"t{number}" for number in range(1_000)})
    assert run(documents, tmp_path / "out", "--partition_by", "language") == 0
    more = write_documents(tmp_path / "more", {"new": "en"})
    assert run(more, tmp_path / "out", "--mode", "append") == 1
    assert "there are 1,001 values" in capsys.readouterr().err
    assert Table(str(tmp_path / "out")).seq == 1


# Verifying.


def test_a_chunk_in_the_folder_of_another_value_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = write_documents(tmp_path / "in", {"a": "en", "b": "de"})
    assert run(documents, tmp_path / "out", "--partition_by", "language") == 0
    manifest = tmp_path / "out" / "control" / "commits" / "00000001.json"
    manifest.write_text(manifest.read_text().replace("by_language=de", "by_language=fr"))
    (chunks,) = (tmp_path / "out" / "chunks").glob("*/*")
    (chunks / "by_language=de").rename(chunks / "by_language=fr")
    capsys.readouterr()
    assert command("verify", tmp_path / "out", "--format", "json") == 1
    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert (fault["check"], fault["row"], fault["document_id"]) == ("partition", 0, "b")
    assert fault["message"] == "lies in by_language=fr, the place of 'de' is by_language=de"


def test_the_values_of_a_path_are_by_key() -> None:
    path = "chunks/chunker=token-0123456789ab/source=s/by_language=en/part-00000-of-00001.parquet"
    assert folder_values(path) == {"chunker": "token-0123456789ab", "source": "s", "by_language": "en"}
