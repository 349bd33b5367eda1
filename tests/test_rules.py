"""Rules choose the chunker of each document, and a job with several chunkers is one table."""

import json
import pickle

import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
from pipelines.options import run_settings
from transforms.chunkers import get_chunker
from transforms.errors import ConfigError
from transforms.records import Document, Source
from transforms.rules import Rule, Rules

DEFAULT, TOKENS, HEADINGS = get_chunker("recursive"), get_chunker("token"), get_chunker("heading")


def document(media_type="text/plain", uri="/data/docs/deep/a.md", **metadata):
    return Document("d", "text", media_type, metadata=metadata, source=Source(uri=uri))


def takes(document, **conditions):
    return Rule(chunker=TOKENS, **conditions).takes(document)


# Conditions.


def test_the_first_rule_that_takes_a_document_counts_and_the_default_takes_the_rest():
    rules = Rules(
        DEFAULT, [Rule(chunker=TOKENS, media_type="text/html"), Rule(chunker=HEADINGS, source="*.md")]
    )
    assert rules.chunker_of(document("text/html")) is TOKENS
    assert rules.chunker_of(document("text/markdown")) is HEADINGS
    assert rules.chunker_of(document(uri="a.txt")) is DEFAULT


@pytest.mark.parametrize(
    ("pattern", "does"),
    [
        ("text/plain", True),
        ("Text/*", True),
        ("text", False),
        ("text/html", False),
        ("*", False),
        ("**", True),
    ],
)
def test_a_media_type_is_met_as_a_whole(pattern, does):
    assert takes(document(), media_type=pattern) is does


@pytest.mark.parametrize(
    ("glob", "does"),
    [
        ("*.md", True),
        ("a.*", True),
        ("?.md", True),
        ("deep/*.md", True),
        ("docs/**/*.md", True),
        ("docs/deep/**/*.md", True),
        ("/data/**", True),
        ("docs/*.md", False),
        ("eep/*.md", False),
        ("*.m", False),
        ("[a-c].md", True),
        ("[!a].md", False),
        ("deep/", True),
        ("docs/", True),
        ("dee/", False),
        ("a.md/", False),
        ("a_md", False),
    ],
)
def test_a_source_is_met_from_the_beginning_of_a_name_to_the_end(glob, does):
    assert takes(document(), source=glob) is does


def test_metadata_are_met_by_every_value():
    manual = document(kind="manual", year=2026)
    assert takes(manual, metadata={"kind": "manual", "year": 2026})
    assert not takes(manual, metadata={"kind": "manual", "year": 2025})
    assert not takes(manual, metadata={"other": "manual"})


def test_all_conditions_are_to_be_met():
    assert not takes(document(), media_type="text/plain", source="*.txt")


# The list.


def test_every_rule_their_order_and_the_default_are_in_the_fingerprint():
    one, two = Rule(chunker=TOKENS, source="*.md"), Rule(chunker=HEADINGS)
    lists = [
        Rules(DEFAULT, [one, two]),
        Rules(DEFAULT, [two, one]),
        Rules(DEFAULT, [one]),
        Rules(TOKENS, [one]),
    ]
    lists.append(Rules(DEFAULT, [Rule(chunker=TOKENS, source="*.txt"), two]))
    assert len({rules.fingerprint() for rules in lists}) == len(lists)
    assert pickle.loads(pickle.dumps(lists[0])).fingerprint() == lists[0].fingerprint()


def test_a_chunker_of_several_rules_is_one_and_the_default_is_the_first():
    rules = Rules(
        DEFAULT, [Rule(chunker=TOKENS), Rule(chunker=get_chunker("recursive")), Rule(chunker=TOKENS)]
    )
    assert [chunker.name for chunker in rules.chunkers] == ["recursive", "token"]


@pytest.mark.parametrize(
    "rule",
    [
        {"source": "*.md"},
        {"chunker": "words"},
        {"chunker": "token", "sources": "*.md"},
        {"chunker": "token", "set": {"split_level": 2}},
        {"chunker": "token", "metadata": "manual"},
        {"chunker": "token", "media_type": ""},
        {"chunker": "token", "source": "[z-a].md"},
        "token",
    ],
)
def test_a_rule_that_is_none_is_refused(rule):
    with pytest.raises(ConfigError):
        run_settings({"input": ["a"], "output": "b", "rules": [rule]})


def test_chunkers_of_rules_count_with_the_tokenizer_of_the_run_unless_they_have_their_own():
    rules = [{"chunker": "token", "chunk_size": 9}, {"chunker": "token", "tokenizer": "o200k_base"}]
    settings = run_settings({"input": ["a"], "output": "b", "tokenizer": "character", "rules": rules})
    assert [rule.chunker.tokenizer for rule in settings.rules] == ["character", "o200k_base"]
    assert [rule.chunker.chunk_size for rule in settings.rules] == [9, 256]
    assert settings.recorded()["rules_hash"] == settings.chunking.fingerprint()


# The job.

JOB = """
chunker: recursive
chunk_size: 12
rules:
  - media_type: text/csv
    chunker: token
    chunk_size: 8
  - source: guides/**/*.md
    chunker: heading
    chunk_size: 20
    set: {split_level: 1}
"""


@pytest.fixture
def corpus(tmp_path):
    docs = tmp_path / "docs"
    (docs / "guides").mkdir(parents=True)
    (docs / "guides" / "tides.md").write_text("# Tides\n\nHigh at noon.\n\n# Moorings\n\nNone.\n")
    (docs / "notes.md").write_text("# Notes\n\nThe ferry leaves at ten.\n")
    (docs / "ports.csv").write_text("port,tide\n" + "".join(f"p{n},{n}.5\n" for n in range(9)))
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def run(corpus, *more):
    settings = (
        "--config",
        corpus / "job.yaml",
        "--input",
        corpus / "docs",
        "--output",
        corpus / "out",
        *more,
    )
    return main(["run", *map(str, settings)])


def names(corpus):
    """Files of the chunks by the chunker of their partition, and the strategy of every row in them."""
    found = {}
    for path in (corpus / "out/chunks").rglob("*.parquet"):
        rows = pq.read_table(path, partitioning=None).to_pylist()
        partition = path.parent.parent.name.removeprefix("chunker=")
        for row in rows:
            assert partition == f"{row['chunker_name']}-{row['chunker_hash'][:12]}"
            found.setdefault(row["chunker_name"], set()).add(row["source_uri"].rpartition("/")[2])
    return found


def report_of(corpus):
    (report,) = (corpus / "out/control/runs").glob("*.json")
    return json.loads(report.read_text())


def test_each_document_is_in_the_partition_of_the_chunker_that_cut_it(corpus, capsys):
    assert run(corpus) == 0
    assert names(corpus) == {"heading": {"tides.md"}, "recursive": {"notes.md"}, "token": {"ports.csv"}}
    report = report_of(corpus)
    assert len(report["settings"]["rules_hash"]) == 16
    assert [rule["chunker"] for rule in report["settings"]["rules"]] == ["token", "heading"]
    assert {chunker["name"] for chunker in report["chunkers"].values()} == {"heading", "recursive", "token"}
    assert main(["verify", str(corpus / "out"), "--input", str(corpus / "docs")]) == 0


def test_a_run_replaces_the_partitions_of_all_its_chunkers_even_by_nothing(corpus, capsys):
    assert run(corpus) == 0
    (corpus / "docs/ports.csv").unlink()
    (corpus / "docs/guides/tides.md").rename(corpus / "docs/tides.md")
    assert run(corpus, "--mode", "overwrite") == 0
    current = json.loads(sorted((corpus / "out/control/commits").glob("*.json"))[-1].read_text())
    assert current["totals"]["documents"]["rows"] == 2
    listed = [entry["path"] for entry in current["added"] if entry["path"].startswith("chunks/")]
    assert all("chunker=recursive-" in path for path in listed)
    removed = {path.split("/")[1].split("-")[0] for path in current["removed"] if path.startswith("chunks/")}
    assert removed == {"chunker=heading", "chunker=recursive", "chunker=token"}


def test_from_python_rules_are_an_argument_of_the_stage(corpus):
    beam = pytest.importorskip("apache_beam")
    from apache_beam.testing.util import assert_that, equal_to

    from transforms.chunk import ChunkDocuments

    rules = [Rule(chunker=TOKENS, media_type="text/csv")]
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        names = (
            pipeline
            | beam.Create([Document("a", "a,b", "text/csv"), Document("b", "a b")])
            | ChunkDocuments("recursive", rules, chunk_size=100)
            | beam.Map(lambda result: (result.document.document_id, result.chunker.name))
        )
        assert_that(names, equal_to([("a", "token"), ("b", "recursive")]))
