"""Tables in object stores, each behind a real server on this machine."""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from aiohttp.client_reqrep import ConnectionKey
from azure.storage.blob.aio import ExponentialRetry
from botocore.exceptions import ClientError
from fsspec.implementations.memory import MemoryFileSystem
from s3fs.errors import translate_boto_error
from stores import EMULATORS, LOST, SECRETS, Emulator, Proxy, started

beam = pytest.importorskip("apache_beam")

from apache_beam.internal.cloudpickle import cloudpickle  # noqa: E402
from apache_beam.pipeline import PipelineVisitor  # noqa: E402

from pipelines import chunk_corpus, read_table  # noqa: E402
from pipelines.cli import main  # noqa: E402
from pipelines.options import run_settings  # noqa: E402
from transforms.commit import commit  # noqa: E402
from transforms.errors import CommitError, ConfigError  # noqa: E402
from transforms.packs import PackBuilder  # noqa: E402
from transforms.paths import FileEntry  # noqa: E402
from transforms.provenance import ChunkerRecord, Run  # noqa: E402
from transforms.records import DeadLetter, Source  # noqa: E402
from transforms.shards import write_shard  # noqa: E402
from transforms.storage import filesystem, is_transient  # noqa: E402
from transforms.table import Store  # noqa: E402

TEXTS = {
    "guide.md": "# Arrivals\n\nA ship that arrives waits outside.\n\n## 手续\n\n船长必须在到达后一小时内报告。\n",
    "ports.csv": "berth,ship\n1,Aurora\n2,Fram\n",
    "deep/er/letter.txt": "Письмо.\n\nПогода хорошая, корабли приходят каждый день.\n",
    "deep/er/notes.txt": "First line.\nSecond line, which is a little longer than the first one.\n" * 3,
}
FEW = dict(TEXTS)
ODD_NAMES = ["a[1].md", "q?.md", "b#c.md", "100%25.md", "sp ace.md", "日本.md", "star*.md", "std::vector.md"]
TEXTS |= {f"odd/{name}": f"This is {name}.\n" for name in ODD_NAMES}
# What tells where a document came from, and so differs where that does.
OF_SOURCE = {
    *("chunk_id", "document_id", "parent_id", "run_id", "created_at"),
    *("source_uri", "source_version", "source_etag", "source_modified_at"),
}


@dataclass
class Bucket:
    """An empty bucket of a server that this process is told to use."""

    emulator: Emulator
    url: str
    uri: str

    @property
    def fs(self) -> Any:
        fs = filesystem(self.uri + "/x")[0]
        fs.invalidate_cache()
        return fs

    def put(self, texts: dict[str, str]) -> str:
        """Objects, and the folder that they are in."""
        for name, text in texts.items():
            self.fs.pipe_file(f"{self._name}/in/{name}", text.encode())
        return f"{self.uri}/in"

    def tree(self, folder: str = "out") -> dict[str, bytes]:
        """All objects of a folder, by the names they have there."""
        root = f"{self._name}/{folder}"
        return {path.removeprefix(f"{root}/"): self.fs.cat_file(path) for path in self.fs.find(root)}

    @property
    def _name(self) -> str:
        return self.uri.partition("://")[2]


@pytest.fixture(scope="session", params=EMULATORS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """A server: its name and its address."""
    with started(EMULATORS[request.param], tmp_path_factory.mktemp("server")) as url:
        if url is None:
            left_out = f"{request.param} is not installed: npm ci --prefix requirements"
            (pytest.fail if os.environ.get("CHUNKMILL_REQUIRE_AZURITE") == "1" else pytest.skip)(left_out)
        yield request.param, url


@pytest.fixture
def bucket(
    server: tuple[str, str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Bucket:
    """A bucket that no other test uses."""
    name, url = server
    emulator = EMULATORS[name]
    use(emulator, url, monkeypatch)
    bucket = f"box-{abs(hash(request.node.nodeid)):x}"
    filesystem(f"{emulator.scheme}://{bucket}/x")[0].mkdir(bucket)
    return Bucket(emulator, url, f"{emulator.scheme}://{bucket}")


def use(emulator: Emulator, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell this process of a server; what it knew of others is forgotten."""
    for name, value in emulator.environment(url).items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class({"gs": "gcs"}.get(emulator.scheme, emulator.scheme)).clear_instance_cache()


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents on a disk, in `in`, and a table that was made of them, in `out`."""
    folder = tmp_path_factory.mktemp("disk")
    for name, text in TEXTS.items():
        (path := folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert run(folder / "in", folder / "out", *SHARDED) == 0
    return folder


SHARDED = ("--run_time", "2026-01-01", "--shards", "3")


def run(source: object, output: object, *more: str) -> int:
    flags = ["--input", f"{source}/**", "--output", str(output), "--workers", "1", "--chunk_size", "24"]
    return main(["run", *flags, *more])


def rows(table: pa.Table, *left_out: str) -> list[dict[str, Any]]:
    kept = [name for name in table.column_names if name not in left_out]
    return sorted(table.select(kept).to_pylist(), key=repr)


def texts(output: str, at: int | None = None) -> str:
    table = (
        read_table(output, at).to_table().sort_by([("source_uri", "ascending"), ("chunk_index", "ascending")])
    )
    return "\n".join(table["text"].to_pylist())


def test_a_table_in_a_store_lives_as_one_on_a_disk(
    bucket: Bucket, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = bucket.put(TEXTS), f"{bucket.uri}/out"
    assert run(source, output) == 0
    first = read_table(output).to_table()
    assert {row["source_uri"] for row in first.to_pylist()} == {f"{source}/{name}" for name in TEXTS}
    assert all(row["source_etag"] and row["source_modified_at"] for row in first.to_pylist())
    assert rows(first, *OF_SOURCE) == rows(read_table(str(disk / "out")).to_table(), *OF_SOURCE)

    # Anyone's reader, who knows nothing of manifests.
    files = f"{output}/chunks".partition("://")[2]
    plain = ds.dataset(files, filesystem=bucket.fs, partitioning=None).to_table()
    assert rows(plain) == rows(first)

    before = bucket.tree()
    assert run(source, output) == 0
    assert bucket.tree() == before

    bucket.put({"guide.md": "# Departures\n\nSign the book, pay, go.\n"})
    assert run(source, output) == 0
    assert "Departures" in texts(output)
    assert "Arrivals" not in texts(output)
    assert "Arrivals" in texts(output, at=1)

    capsys.readouterr()
    assert main(["verify", output, "--input", f"{source}/**"]) == 0
    assert f"{len(TEXTS)} cut again" in capsys.readouterr().out
    assert main(["history", output, "--format", "json"]) == 0
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [1, 2]
    now = rows(read_table(output).to_table())
    assert main(["vacuum", output, "--older_than", "0"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert rows(read_table(output).to_table()) == now
    with pytest.raises(ConfigError, match="removed by vacuum"):
        read_table(output, 1)
    assert main(["compact", output, "--shards", "2"]) == 0
    assert rows(read_table(output).to_table()) == now
    assert main(["verify", output]) == 0


def test_a_store_gets_the_files_that_a_disk_gets_byte_for_byte(bucket: Bucket, disk: Path) -> None:
    assert run(disk / "in", f"{bucket.uri}/out", *SHARDED) == 0
    files = [path for path in (disk / "out").rglob("*") if path.is_file() and "runs" not in path.parts]
    expected = {str(path.relative_to(disk / "out")): path.read_bytes() for path in files}
    assert len(expected) > 6
    assert {k: v for k, v in bucket.tree().items() if not k.startswith("control/runs/")} == expected


CAREFUL = pytest.mark.parametrize(
    "server", [n for n, e in EMULATORS.items() if e.has_preconditions], indirect=True
)


# Two runs at once.


CHUNKER = ChunkerRecord("recursive", 1, "0123456789abcdef", "{}", "characters", "ff", 10)


def stage(run: Run, output: str) -> list[FileEntry]:
    """The files of a run that failed to read a document of its own."""
    builder = PackBuilder(run)
    builder.add(DeadLetter(run.run_id, "read", "broken", "m", Source("corpus")))
    return write_shard(0, [pack for _, pack in builder.flush()], run, output, CHUNKER)


@CAREFUL
def test_of_two_runs_that_race_for_a_commit_one_wins_and_the_other_is_told(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = f"{bucket.uri}/out"
    runs = [Run(name, 1_000_000) for name in ("first", "second")]
    staged = {run.run_id: stage(run, output) for run in runs}
    both, create = threading.Barrier(2), Store.create

    def at_the_same_time(self: Store, path: str, data: bytes) -> None:
        both.wait(30)
        create(self, path, data)

    monkeypatch.setattr(Store, "create", at_the_same_time)
    outcomes: dict[str, str] = {}

    def attempt(run: Run) -> None:
        try:
            outcomes[run.run_id] = commit(staged[run.run_id], run, output, [CHUNKER])["outcome"]
        except CommitError as error:
            outcomes[run.run_id] = str(error)

    threads = [threading.Thread(target=attempt, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (winner,) = [name for name, outcome in outcomes.items() if outcome == "committed"]
    (loser,) = outcomes.keys() - {winner}
    assert f"run {winner} made commit 1" in outcomes[loser]
    tree = bucket.tree()
    manifest = json.loads(tree["control/commits/00000001.json"])
    assert manifest["run_id"] == winner
    data = {
        path
        for path in tree
        if path.startswith(("chunks/", "documents/", "dead_letters/", "control/staging"))
    }
    assert data == {entry["path"] for entry in manifest["added"]}
    assert main(["verify", output]) == 0


# A store that fails.


@pytest.fixture
def proxy(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before the server of the bucket, which is reached by it only."""
    with Proxy.before(bucket.url) as proxy:
        use(bucket.emulator, proxy.url, monkeypatch)
        yield proxy


@CAREFUL
def test_a_store_that_fails_one_request_in_twenty_is_survived(
    bucket: Bucket, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Azure's package waits a quarter of a minute before it tries again.
    monkeypatch.setattr(ExponentialRetry, "get_backoff_time", lambda *_: 0)
    source, output = bucket.put(FEW), f"{bucket.uri}/out"
    proxy.fault = lambda n: None if n % 20 else (503 if n % 40 else LOST)
    for n in range(2):
        bucket.put({"guide.md": f"# Change {n}\n\nSign the book, pay, go.\n"})
        assert run(source, output) == 0
    print(proxy.requests, proxy.faults)
    assert proxy.faults >= 4
    assert "Change 1" in texts(output)
    assert main(["verify", output, "--input", f"{source}/**"]) == 0


@CAREFUL
def test_a_store_that_refuses_all_from_some_request_on_leaves_the_old_table(
    bucket: Bucket, proxy: Proxy
) -> None:
    source, output = bucket.put(FEW), f"{bucket.uri}/out"
    begin = proxy.requests
    assert run(source, output) == 0
    needed = proxy.requests - begin
    old = texts(output)
    for share in (0.4, 0.8):
        # Of the same text the second run would find the waves of the first.
        bucket.put({"guide.md": f"# Departures {share}\n\nSign the book, pay, go.\n"})
        last = proxy.requests + int(share * needed)
        proxy.fault = lambda n, last=last: 403 if n > last else None
        status = 1
        with suppress(Exception):  # every store has errors of its own
            status = run(source, output)
        assert status, share
        assert proxy.requests > last
        proxy.fault = lambda n: None
        assert texts(output) == old
    assert run(source, output) == 0
    assert "Departures" in texts(output)
    assert main(["verify", output]) == 0


def test_a_file_goes_away_only_when_its_copy_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure answers before it has copied; its server here does not."""
    copied = MemoryFileSystem.cp_file

    def later(self: MemoryFileSystem, path: str, target: str) -> None:
        self.pipe_file(target, b"")
        threading.Timer(0.3, copied, (self, path, target)).start()

    monkeypatch.setattr(MemoryFileSystem, "cp_file", later)
    store = Store("memory://late", "run")
    store.write("staged", b"all of it")
    store.move("staged", "chunks/part")
    assert store.read("chunks/part") == b"all of it"
    assert store.read("staged") is None


def refused(code: str) -> OSError:
    return translate_boto_error(ClientError({"Error": {"Code": code}}, "GetObject"))


def unconnected(number: int) -> OSError:
    return aiohttp.ClientConnectorError(
        ConnectionKey("store", 443, True, True, None, None, None), OSError(number, "")
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        *(
            (refused(code), True)
            for code in ("503", "SlowDown", "500", "InternalError", "502", "RequestTimeout")
        ),
        *(
            (refused(code), False)
            for code in ("404", "NoSuchKey", "403", "AccessDenied", "InvalidObjectState")
        ),
        *(
            (unconnected(number), True)
            for number in (errno.ECONNREFUSED, errno.ENETUNREACH, socket.EAI_AGAIN)
        ),
        (OSError(errno.EIO, "a broken disk"), False),
        (OSError(errno.ENAMETOOLONG, ""), False),
    ],
    ids=repr,
)
def test_a_store_that_is_busy_or_away_says_nothing_of_the_document(error: OSError, expected: bool) -> None:
    assert is_transient(error) is expected


# What nobody else may know.


@CAREFUL
def test_credentials_are_in_nothing_that_is_written_logged_or_sent(
    bucket: Bucket,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, output = bucket.put({**FEW, "bad.md": "\0\0"}), f"{bucket.uri}/out"
    caplog.set_level(logging.DEBUG)
    assert run(source, output, "--report", str(tmp_path / "report.json")) == 3
    settings = run_settings({"input": [f"{source}/**"], "output": output, "run_id": "other"})
    pipeline = beam.Pipeline()
    chunk_corpus.build(chunk_corpus.prepare(settings))(pipeline)
    functions = Functions()
    pipeline.visit(functions)
    shown = capsys.readouterr()

    said = {
        "log": caplog.text,
        "output": shown.out + shown.err,
        "report": (tmp_path / "report.json").read_text(),
        **{
            f"pickle of {name}": str(cloudpickle.dumps(function))
            for name, function in functions.found.items()
        },
        **{path: readable(path, data) for path, data in bucket.tree().items()},
    }
    assert len(functions.found) > 5
    assert {path.partition("/")[0] for path in said} > {"chunks", "documents", "dead_letters", "control"}
    assert sum(output in text for text in said.values()) > 2
    assert [place for place, text in said.items() if any(secret in text for secret in SECRETS)] == []


class Functions(PipelineVisitor):
    """The functions of a pipeline, which are what is sent to workers."""

    def __init__(self) -> None:
        self.found: dict[str, object] = {}

    def visit_transform(self, node: Any) -> None:
        if isinstance(node.transform, beam.ParDo):
            self.found[node.full_label] = node.transform.fn


def readable(path: str, data: bytes) -> str:
    if not path.endswith(".parquet"):
        return data.decode()
    table = pq.read_table(pa.BufferReader(data))
    return f"{table.schema.metadata} {table.to_pylist()}"


@pytest.mark.parametrize(
    "uri",
    [
        "s3://x7user:x7SECRETx7@box/out",
        "s3://x7user:x7SEC/RETx7SECRETx7@box/out",
        "gs://box/out?X-Goog-Signature=x7SECRETx7",
        "abfs://box/out?sv=1&sig=x7SECRETx7",
        "simplecache::s3://x7user:x7SECRETx7@box/out",
    ],
)
@pytest.mark.parametrize("command", ["input", "output", "verify", "history", "vacuum"])
def test_a_uri_with_credentials_is_refused_and_not_shown(
    uri: str,
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "in.txt").write_text("Sign the book, pay, go.")
    arguments = {
        "input": ["run", "--input", uri, "--output", str(tmp_path / "out")],
        "output": ["run", "--input", str(tmp_path / "in.txt"), "--output", uri],
    }
    assert main(arguments.get(command, [command, uri])) == 2
    shown = capsys.readouterr()
    assert "SECRET" not in shown.out + shown.err + caplog.text
    assert not (tmp_path / "out").exists()


def test_an_output_with_credentials_that_holds_the_input_is_not_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Store("memory://credentials", "run").write("in/a.txt", b"Sign the book, pay, go.")
    output = "memory://x7user:x7SECRETx7@credentials"
    assert main(["run", "--input", "memory://credentials/in/a.txt", "--output", output]) == 2
    assert "SECRET" not in "".join(capsys.readouterr())
