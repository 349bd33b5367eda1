from __future__ import annotations

import datetime
import decimal
import errno
import hashlib
import io
import os
import pickle
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from pydantic import ValidationError

from transforms.errors import ConfigError
from transforms.records import Block, DeadLetter, Location, RawDocument
from transforms.sources import (
    ReadSettings,
    ReadTask,
    SourceFile,
    check_columns,
    files,
    match,
    plan,
    plan_objects,
    read,
    tables,
)

MIB = 1 << 20
ODD_NAMES = [
    "a[1].md",
    "a1.md",
    "q?.md",
    "qx.md",
    "b#c.md",
    "100%25.md",
    "sp ace.md",
    "日本.md",
    "star*.md",
    "plus+.md",
]
ID_TEXT = ReadSettings(columns={"document_id": "id"})


@pytest.fixture(params=["disk", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty folder, on disk and in an object store."""
    if request.param == "disk":
        yield str(tmp_path)
        return
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    yield "memory://bucket"
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def put(root: str, name: str, content: bytes | str = "") -> str:
    data = content.encode() if isinstance(content, str) else content
    if root.startswith("memory://"):
        fsspec.filesystem("memory").pipe_file(f"{root}/{name}", data)
    else:
        path = Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return f"{root}/{name}"


def names(root: str, found: Sequence[SourceFile]) -> list[str]:
    return [file.uri.removeprefix(f"{root}/") for file in found]


def run(
    patterns: str | Sequence[str], settings: ReadSettings = ID_TEXT
) -> tuple[list[RawDocument], list[DeadLetter]]:
    """All that reading `patterns` gives, tables and objects."""
    found = match(patterns, input_format=settings.input_format)
    items: list[Any] = []
    for step in (step for file in found for step in plan(file, settings)):
        step = pickle.loads(pickle.dumps(step))
        items += read(step, settings) if isinstance(step, ReadTask) else [step]
    return (
        [item for item in items if isinstance(item, RawDocument)],
        [item for item in items if isinstance(item, DeadLetter)],
    )


def table(path: str | Path, columns: dict[str, Any], **options: Any) -> str:
    pq.write_table(pa.table(columns), str(path), **options)
    return str(path)


# --- match ----------------------------------------------------------------------------------------------


def test_an_exact_name_is_that_file_even_if_it_could_be_a_pattern_or_a_url(root: str) -> None:
    for number, name in enumerate(ODD_NAMES):
        put(root, f"in/{name}", f"I am file number {number}.\n")
    for number, name in enumerate(ODD_NAMES):
        documents, dead = run(f"{root}/in/{name}")
        assert [d.content for d in documents] == [f"I am file number {number}.\n".encode()]
        assert documents[0].source.uri == f"{root}/in/{name}"
        assert not dead
    documents, _ = run(f"{root}/in/*.md")
    assert sorted(d.source.uri.rpartition("/")[2] for d in documents) == sorted(ODD_NAMES)
    assert len({d.document_id for d in documents}) == len(ODD_NAMES)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.md", "a.md b.md"),
        ("?.md", "a.md b.md"),
        ("[ab].md", "a.md b.md"),
        ("[!a].md", "b.md"),
        ("a*", "a.md"),
        ("*", "a.md b.md z.txt"),
        ("*/*.md", "sub/c.md"),
        ("**/*.md", "a.md b.md sub/c.md sub/deep/d.md"),
        ("**/deep/*.md", "sub/deep/d.md"),
        ("sub/**", "sub/c.md sub/deep/d.md"),
        ("sub", "sub/c.md sub/deep/d.md"),
        ("sub/", "sub/c.md sub/deep/d.md"),
        ("su*/", "sub/c.md sub/deep/d.md"),
        ("**", "a.md b.md sub/c.md sub/deep/d.md z.txt"),
        ("", "a.md b.md sub/c.md sub/deep/d.md z.txt"),
        ("**/**/d.md", "sub/deep/d.md"),
        ("sub/_delta_log/x.md", "sub/_delta_log/x.md"),
        ("sub/_delta_log/*", "sub/_delta_log/x.md"),
    ],
)
def test_a_pattern_means_the_same_on_disk_and_in_a_store(root: str, pattern: str, expected: str) -> None:
    for name in [
        "a.md",
        "b.md",
        "z.txt",
        "sub/c.md",
        "sub/deep/d.md",
        "sub/_delta_log/x.md",
        "_SUCCESS",
        "sub/_metadata",
        ".a.md.crc",
    ]:
        put(root, name)
    assert names(root, match([f"{root}/{pattern}"])) == expected.split()


def test_a_name_that_begins_with_an_underscore_is_a_document(root: str) -> None:
    for name in ("__init__.py", "_static/_a.md", "__tests__/b.md", "_part.parquet"):
        put(root, name)
    assert names(root, match([root])) == ["__init__.py", "__tests__/b.md", "_part.parquet", "_static/_a.md"]


def test_a_folder_that_looks_like_a_pattern_is_that_folder(root: str) -> None:
    put(root, "a[1]/x.md")
    put(root, "a1/y.md")
    assert names(root, match([f"{root}/a[1]"])) == ["a[1]/x.md"]
    assert names(root, match([f"{root}/a[1]/*.md"])) == ["a[1]/x.md"]
    assert names(root, match([f"{root}/a[[]1]/*.md"])) == ["a[1]/x.md"]
    assert names(root, match([f"{root}/a?/*.md"])) == ["a1/y.md"]


def test_what_matches_nothing_or_is_missing_stops_the_launch_and_is_named(root: str) -> None:
    for name in ("docs/a.md", "docs/b.md", "docs/sub/c.md"):
        put(root, name)
    for missing in ("nothing/*.md", "docs/missing.md", "docs/a.md/x", "docs/*.txt", "docs/a.md/"):
        with pytest.raises(ConfigError, match="matches no file") as caught:
            match([f"{root}/docs/*.md", f"{root}/{missing}"])
        assert caught.value.setting == "input"
        assert caught.value.value == f"{root}/{missing}"
        assert match([f"{root}/{missing}"], allow_empty=True) == []
    with pytest.raises(ConfigError):
        match([])
    assert match([], allow_empty=True) == []


def test_a_file_matched_twice_is_read_once(root: str) -> None:
    put(root, "docs/b.md")
    put(root, "docs/a.md")
    found = match([f"{root}/docs/*.md", f"{root}/docs/a*", f"{root}/docs/a.md", f"{root}/docs"])
    assert names(root, found) == ["docs/a.md", "docs/b.md"]


def test_a_local_file_has_one_name_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(str(tmp_path), "in/a.md")
    monkeypatch.chdir(tmp_path)
    found = match(["in/a.md", "./in/*.md", f"{tmp_path}/in/../in/a.md", f"file://{tmp_path}/in/a.md"])
    assert [file.uri for file in found] == [f"{tmp_path}/in/a.md"]


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    put(str(tmp_path), "out/far.md", "far")
    put(str(tmp_path), "in/sub/a.md", "a")
    (tmp_path / "in/sub/loop").symlink_to(tmp_path / "in", target_is_directory=True)
    (tmp_path / "in/self").symlink_to(tmp_path / "in/self")
    (tmp_path / "in/again").symlink_to(tmp_path / "in/sub", target_is_directory=True)
    (tmp_path / "in/away").symlink_to(tmp_path / "out", target_is_directory=True)
    (tmp_path / "in/file.md").symlink_to(tmp_path / "out/far.md")
    (tmp_path / "in/gone.md").symlink_to(tmp_path / "nowhere")
    found = match([str(tmp_path / "in")])
    assert names(f"{tmp_path}/in", found) == ["away/far.md", "file.md", "gone.md", "self", "sub/a.md"]
    assert [file.size for file in found] == [3, 3, 0, 0, 1]
    documents, dead = run(str(tmp_path / "in"))
    assert [d.content for d in documents] == [b"far", b"far", b"a"]
    assert [d.reason for d in dead] == ["unreadable", "unreadable"]
    assert "No such file" in dead[0].message


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    put(str(tmp_path), "a.md")
    os.mkfifo(tmp_path / "pipe.md")
    assert names(str(tmp_path), match([f"{tmp_path}/*.md"])) == ["a.md"]
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        match([f"{tmp_path}/pipe.md"])


def test_a_local_name_that_is_not_utf_8_is_one_dead_letter(tmp_path: Path) -> None:
    put(str(tmp_path), "a.md")
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("x")
    documents, dead = run(f"{tmp_path}/*.md")
    assert len(documents) == 1
    assert [d.reason for d in dead] == ["unreadable"]
    assert dead[0].source.uri.encode().endswith(b"caf\\udce9.md")


def test_a_folder_that_cannot_be_listed_stops_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(str(tmp_path), "in/a.md")

    def denied(*_: Any, onerror: Callable[[OSError], None], **__: Any) -> Iterator[Any]:
        onerror(PermissionError(errno.EACCES, "Permission denied", "in"))
        yield from ()

    monkeypatch.setattr(os, "walk", denied)
    with pytest.raises(ConfigError, match="Permission denied"):
        match([str(tmp_path / "in")])


def test_a_bucket_cannot_be_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "filesystem", lambda uri, setting: (fsspec.filesystem("memory"), uri[5:]))
    with pytest.raises(ConfigError, match="bucket cannot be a pattern"):
        match(["s3://buck*/a.md"])


@pytest.mark.parametrize("pattern", ["http://host/a.md", "zip://a::memory://b", "a\0b"])
def test_an_input_that_can_never_work_stops_the_launch(pattern: str) -> None:
    with pytest.raises(ConfigError) as caught:
        match([pattern], allow_empty=True)
    assert caught.value.setting == "input"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {
                "ETag": '"abc-2"',
                "VersionId": "v1",
                "LastModified": datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc),
            },
            ("abc-2", "v1", 1704153600_000000),
        ),
        ({"ETag": '"abc"', "VersionId": "null"}, ("abc", None, None)),
        (
            {"etag": "CJ/=", "generation": "17", "updated": "2024-01-02T00:00:00.123456Z"},
            ("CJ/=", "17", 1704153600_123456),
        ),
        (
            {"etag": "0x8D", "version_id": "2024", "last_modified": datetime.datetime(2024, 1, 2)},
            ("0x8D", "2024", 1704153600_000000),
        ),
        ({"mtime": 1704153600.25, "created": 5.0}, (None, None, 1704153600_250000)),
    ],
)
def test_version_tag_and_time_are_kept_as_each_store_gives_them(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    class Store(MemoryFileSystem):  # type: ignore[misc]
        store = {}

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "type": "file", "size": 3, **told}

    monkeypatch.setattr(
        files, "filesystem", lambda uri, setting: (Store(skip_instance_cache=True), "/b/a.md")
    )
    assert match(["memory://b/a.md"]) == [
        SourceFile("memory://b/a.md", 3, etag=expected[0], version=expected[1], modified_at=expected[2])
    ]


def test_the_format_is_told_by_the_name_or_the_setting(root: str) -> None:
    for name in ("a.md", "b.parquet", "C.PARQUET"):
        put(root, name)
    assert [f.format for f in match([f"{root}/*"])] == ["parquet", "object", "parquet"]
    assert {f.format for f in match([f"{root}/*"], input_format="object")} == {"object"}


# --- objects --------------------------------------------------------------------------------------------


def test_an_object_is_a_document_with_its_bytes_and_a_stable_id(root: str) -> None:
    uri = put(root, "a.md", b"\xff\xfe raw")
    ((document,), dead) = run(uri)
    assert not dead
    assert document.content == b"\xff\xfe raw"
    assert (document.media_type, document.charset) == (None, None)
    assert document.document_id == hashlib.sha256(f" {uri}".encode()).hexdigest()[:32]
    assert document.source.uri == uri
    assert document.source.row is None
    assert document.source.size == 6
    assert document.source.content_sha256 == hashlib.sha256(b"\xff\xfe raw").hexdigest()


def test_an_empty_object_counts(root: str) -> None:
    put(root, "a.md")
    documents, dead = run(root)
    assert [d.content for d in documents] == [b""]
    assert not dead


def test_objects_are_bundled_by_bytes_and_by_number() -> None:
    sizes = [10, 50, 60, 500, 1, *[0] * 2_500]
    bundles = list(
        plan_objects([SourceFile(f"/{n}", s) for n, s in enumerate(sizes)], ReadSettings(task_bytes=100))
    )
    assert [len(b.files) for b in bundles] == [2, 1, 1, 1000, 1000, 501]
    assert [b.documents for b in bundles] == [len(b.files) for b in bundles]
    assert [f.uri for b in bundles for f in b.files] == [f"/{n}" for n in range(len(sizes))]
    assert list(plan_objects([], ReadSettings())) == []


def test_a_large_object_is_refused_by_its_listing_unread(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "large.md", "x" * 101)
    put(root, "small.md", "x" * 100)
    read_: list[str] = []
    for kind in (type(fsspec.filesystem("file")), MemoryFileSystem):
        original = kind.cat_file
        monkeypatch.setattr(
            kind, "cat_file", lambda self, path, _o=original, **o: read_.append(path) or _o(self, path, **o)
        )
    documents, dead = run(root, ReadSettings(max_document_bytes=100))
    assert len(documents) == len(read_) == 1
    assert [d.reason for d in dead] == ["too_large"]
    assert "101 bytes" in dead[0].message
    assert "max_document_bytes is 100" in dead[0].message


def test_an_object_that_grew_after_it_was_listed_is_refused_too(root: str) -> None:
    put(root, "a.md", "x" * 101)
    (item,) = read(ReadTask((SourceFile(f"{root}/a.md", 5),), 1), ReadSettings(max_document_bytes=100))
    assert isinstance(item, DeadLetter)
    assert item.reason == "too_large"


def test_an_object_that_vanished_is_a_dead_letter_and_the_bundle_goes_on(root: str) -> None:
    put(root, "b.md", "b")
    bundle = ReadTask((SourceFile(f"{root}/a.md", 1), SourceFile(f"{root}/b.md", 1)), 2)
    lost, kept = read(bundle, ReadSettings())
    assert isinstance(lost, DeadLetter)
    assert isinstance(kept, RawDocument)
    assert (lost.stage, lost.reason, lost.document_id) == ("read", "unreadable", f"{root}/a.md")


@pytest.mark.parametrize(
    ("error", "is_transient"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), False),
        (OSError(errno.EIO, "Input/output error"), False),
        (OSError("Forbidden: https://storage/b/o"), False),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), True),
        (TimeoutError("timed out"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
    ],
)
@pytest.mark.parametrize("name", ["a.md", "a.parquet"])
def test_what_may_work_again_is_raised_and_what_will_not_is_a_dead_letter(
    monkeypatch: pytest.MonkeyPatch, name: str, error: OSError, is_transient: bool
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    put("memory://bucket", name, "x")
    monkeypatch.setattr(MemoryFileSystem, "cat_file", fail)
    monkeypatch.setattr(MemoryFileSystem, "open", fail)
    if is_transient:
        with pytest.raises(type(error)):
            run(f"memory://bucket/{name}")
        return
    documents, dead = run(f"memory://bucket/{name}")
    assert not documents
    assert [d.reason for d in dead] == ["unreadable"]
    assert (error.strerror or str(error)) in dead[0].message


def test_a_connection_that_breaks_in_the_middle_of_a_table_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "memory://bucket/t.parquet"
    with fsspec.filesystem("memory").open(path, "wb") as handle:
        pq.write_table(pa.table({"text": ["x"]}), handle)
    (file,) = match([path])
    (task,) = plan(file, ReadSettings())
    assert isinstance(task, ReadTask)

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() < 100:
                raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
            return super().read(size)

    data = fsspec.filesystem("memory").cat_file(path)
    monkeypatch.setattr(MemoryFileSystem, "open", lambda *_, **__: Broken(data))
    with pytest.raises(ConnectionResetError):
        list(read(task, ReadSettings()))


def test_a_store_that_keeps_readers_waiting_is_read_many_at_a_time_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = threading.Barrier(4, timeout=20)

    def wait(self: MemoryFileSystem, path: str, **_: Any) -> bytes:
        together.wait()
        return path.encode()

    monkeypatch.setattr(MemoryFileSystem, "async_impl", True)
    monkeypatch.setattr(MemoryFileSystem, "cat_file", wait)
    bundle = ReadTask(tuple(SourceFile(f"memory://b/{n}", 1) for n in range(8)), 8)
    items = list(read(bundle, ReadSettings()))
    assert [i.content for i in items if isinstance(i, RawDocument)] == [f"/b/{n}".encode() for n in range(8)]


# --- tables: columns ------------------------------------------------------------------------------------


def test_empty_shards_empty_row_groups_broken_files_and_markers(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    pq.ParquetWriter(tmp_path / "none.parquet", schema).close()
    with pq.ParquetWriter(tmp_path / "mid.parquet", schema) as writer:
        writer.write_table(pa.table({"id": ["a"], "text": ["first text"]}, schema=schema))
        writer.write_table(schema.empty_table())
        writer.write_table(pa.table({"id": ["b"], "text": ["second text"]}, schema=schema))
    (tmp_path / "zero-bytes.parquet").touch()
    cut = tmp_path / "cut.parquet"
    table(cut, {"id": ["c"] * 1000, "text": ["lost tail"] * 1000})
    os.truncate(cut, cut.stat().st_size // 2)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".mid.parquet.crc").write_text("crc")

    assert pq.ParquetFile(tmp_path / "mid.parquet").num_row_groups == 3
    documents, dead = run(f"{tmp_path}/*")
    assert [(d.document_id, d.content, d.source.row) for d in documents] == [
        ("a", "first text", 0),
        ("b", "second text", 1),
    ]
    assert [(d.source.uri, d.stage, d.reason) for d in dead] == [
        (str(cut), "read", "not_parquet"),
        (str(tmp_path / "zero-bytes.parquet"), "read", "not_parquet"),
    ]


@pytest.mark.parametrize(
    "type_",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int32(), pa.binary()),
    ],
    ids=str,
)
@pytest.mark.parametrize("column", ["text", "content"])
def test_text_of_any_string_or_binary_type_is_read_and_bytes_stay_bytes(
    tmp_path: Path, type_: pa.DataType, column: str
) -> None:
    inner = type_.value_type if isinstance(type_, pa.DictionaryType) else type_
    values = pa.array(["café one", ""] if "string" in str(inner) else [b"caf\xc3\xa9 one", b""], inner)
    values = values.dictionary_encode() if isinstance(type_, pa.DictionaryType) else values
    try:
        path = table(tmp_path / "t.parquet", {"id": ["0", "1"], column: values})
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow does not know the type in Parquet")
    documents, dead = run(path)
    assert not dead
    expected = ["café one", ""] if "string" in str(inner) else ["café one".encode(), b""]
    assert [d.content for d in documents] == expected
    is_declared = column == "text" and isinstance(documents[0].content, bytes)
    assert documents[0].charset == ("utf-8" if is_declared else None)
    assert [d.source.size for d in documents] == [9, 0]
    assert documents[0].source.content_sha256 == hashlib.sha256("café one".encode()).hexdigest()


def test_bytes_that_are_not_utf_8_go_on_to_the_parser(tmp_path: Path) -> None:
    raw = pa.array([b"\xff\xfe\x00", b""], pa.binary())
    bad = pa.StringArray.from_buffers(2, *raw.buffers()[1:])
    for values in (raw, bad):
        documents, dead = run(table(tmp_path / "t.parquet", {"id": ["x0", "x1"], "text": values}))
        assert not dead
        assert documents[0].content == b"\xff\xfe\x00"
        assert documents[0].charset == "utf-8"
    documents, _ = run(
        table(tmp_path / "t.parquet", {"id": ["x0", "x1"], "text": raw}),
        ReadSettings(columns={"document_id": "id"}, charset="utf-16"),
    )
    assert documents[0].charset == "utf-16"


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([7, 8]), ["7", "8"]),
        (pa.array([7, 8], pa.uint8()), ["7", "8"]),
        (pa.array([2**63, 2**64 - 1], pa.uint64()), [str(2**63), str(2**64 - 1)]),
        (pa.array([-(2**63), 2**63 - 1]), [str(-(2**63)), str(2**63 - 1)]),
        (pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
        (pa.array([b"x", b"y"]), ["x", "y"]),
        (
            pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16)), bytes(16)], pa.binary(16))),
            [str(uuid.UUID(bytes=bytes(range(16)))), str(uuid.UUID(int=0))],
        ),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_ids_become_strings(tmp_path: Path, ids: pa.Array, expected: list[str]) -> None:
    documents, dead = run(table(tmp_path / "t.parquet", {"id": ids, "text": ["a", "b"]}))
    assert not dead
    assert [d.document_id for d in documents] == expected


def test_a_null_or_empty_id_and_a_null_text_are_dead_letters_with_their_row(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.parquet",
        {"id": ["a", None, "", "d"], "text": ["x", "y", "z", None], "content": [None] * 4},
    )
    documents, dead = run(path)
    assert [d.document_id for d in documents] == ["a"]
    assert [(d.document_id, d.reason, d.source.row) for d in dead] == [
        (path, "null_id", 1),
        (path, "null_id", 2),
        ("d", "null_text", 3),
    ]
    assert f"{path}, row 3: " in dead[2].message


def test_without_an_id_column_the_id_is_the_hash_of_the_address(tmp_path: Path) -> None:
    path = table(tmp_path / "t.parquet", {"text": ["x", "x", "x"]}, row_group_size=1)
    first, _ = run(path, ReadSettings(task_bytes=1))
    again, _ = run(path, ReadSettings())
    assert [d.document_id for d in first] == [d.document_id for d in again]
    assert len({d.document_id for d in first}) == 3
    assert first[2].document_id == hashlib.sha256(f"2 {path}".encode()).hexdigest()[:32]


def test_a_nested_list_as_text_names_the_type_of_the_column(tmp_path: Path) -> None:
    pages = pa.array([[{"page": 2, "text": "two"}, {"page": 1, "text": "one"}]] * 3)
    path = table(tmp_path / "t.parquet", {"id": ["p0", "p1", "p2"], "text": pages})
    documents, (dead,) = run(path)
    assert not documents
    assert (dead.reason, dead.documents) == ("wrong_type", 3)
    assert "column 'text' has type list<element: struct<page: int64, text: string>>" in dead.message
    with pytest.raises(ConfigError, match="--text_column") as caught:
        check_columns(match([path])[0], ID_TEXT)
    assert (caught.value.setting, caught.value.value) == ("text_column", "text")


@pytest.mark.parametrize(
    ("settings", "setting", "value"),
    [
        ({"columns": {"text": "body"}}, "text_column", "body"),
        ({"columns": {"document_id": "key"}}, "id_column", "key"),
        ({"columns": {"text": ""}}, "text_column", ""),
        ({"columns": {"text": "", "content": "raw"}}, "content_column", "raw"),
        ({"metadata_columns": ("year",)}, "metadata_columns", "year"),
    ],
)
def test_a_missing_column_is_named_with_those_there_are_and_the_flag(
    tmp_path: Path, settings: dict[str, Any], setting: str, value: str
) -> None:
    path = table(tmp_path / "t.parquet", {"id": ["a", "b"], "text": ["x", "y"]})
    with pytest.raises(ConfigError) as caught:
        check_columns(match([path])[0], ReadSettings(**settings))
    assert (caught.value.setting, caught.value.value) == (setting, value)
    assert f"--{setting} to one of 'id', 'text'" in str(caught.value)
    documents, (dead,) = run(path, ReadSettings(**settings))
    assert not documents
    assert (dead.reason, dead.documents) == ("missing_column", 2)


def test_columns_that_stand_twice_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), path)
    _, (dead,) = run(path, ReadSettings())
    assert dead.reason == "duplicate_column"


def test_a_file_that_cannot_tell_passes_the_check_of_columns(tmp_path: Path) -> None:
    empty = table(tmp_path / "a.parquet", {"other": pa.array([], pa.string())})
    (tmp_path / "b.parquet").write_text("no Parquet")
    good = table(tmp_path / "c.parquet", {"text": ["x"]})
    found = match([f"{tmp_path}/*"])
    assert [check_columns(file, ReadSettings()) for file in found] == [False, False, True]
    documents, dead = run([empty, good], ReadSettings())
    assert len(documents) == 1
    assert not dead


def test_an_unwanted_column_can_be_left_out(tmp_path: Path) -> None:
    path = table(tmp_path / "t.parquet", {"text": ["x"], "size": ["large"]})
    assert run(path, ReadSettings())[1][0].reason == "wrong_type"
    documents, dead = run(path, ReadSettings(columns={"size": ""}))
    assert not dead
    assert documents[0].source.size == 1


def test_all_that_a_table_may_hold_reaches_the_document(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
    path = table(
        tmp_path / "t.parquet",
        {
            "document_id": ["a"],
            "uri": ["https://me:secret@host/page.html?token=secret"],
            "text": ["<p>x</p>"],
            "media_type": ["text/html"],
            "title": ["T"],
            "language": ["de"],
            "license": ["MIT"],
            "acl_labels": [["staff", "it"]],
            "tenant_id": [42],
            "metadata": ['{"k": [1, {"n": null}]}'],
            "version": [3],
            "etag": ["e"],
            "size": [99],
            "modified_at": pa.array([day], pa.timestamp("ns", "Europe/Berlin")),
            "content_sha256": ["ab" * 32],
            "year": [2024],
            "ignored": ["x"],
        },
    )
    ((document,), dead) = run(path, ReadSettings(source_name="web", metadata_columns=("year",)))
    assert not dead
    assert (document.document_id, document.content, document.media_type) == ("a", "<p>x</p>", "text/html")
    assert (document.title, document.language, document.license) == ("T", "de", "MIT")
    assert (document.acl_labels, document.tenant_id) == (("staff", "it"), "42")
    assert document.metadata == {"k": [1, {"n": None}], "year": 2024}
    source = document.source
    assert (source.name, source.uri, source.row) == ("web", "https://host/page.html", 0)
    assert (source.version, source.etag, source.size) == ("3", "e", 99)
    assert source.modified_at == 1704164645_678901
    assert source.content_sha256 == "ab" * 32
    assert document.digest is None  # what a table tells is not the digest of what it holds


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([86_400], pa.timestamp("s")), 86_400_000_000),
        (pa.array([86_400_000], pa.timestamp("ms", "UTC")), 86_400_000_000),
        (pa.array([1], pa.date32()), 86_400_000_000),
        (pa.array([86_400_000], pa.date64()), 86_400_000_000),
        (pa.array([5]), 5),
        (pa.array([-1_500], pa.timestamp("ns")), -2),
        (pa.array([2**62], pa.timestamp("us")), 2**62),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_times_of_any_unit_become_microseconds(tmp_path: Path, values: pa.Array, expected: int) -> None:
    documents, _ = run(table(tmp_path / "t.parquet", {"text": ["x"], "modified_at": values}), ReadSettings())
    assert documents[0].source.modified_at == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())), {"k": "v"}),
        (
            pa.array([{"k": 1.5, "nan": float("nan"), "inner": {"b": b"x"}}]),
            {"k": 1.5, "nan": None, "inner": {"b": "x"}},
        ),
        (
            pa.array([{"d": decimal.Decimal("1.50"), "t": datetime.date(2024, 1, 2)}]),
            {"d": "1.50", "t": "2024-01-02"},
        ),
        (pa.array([b'{"k": true}']), {"k": True}),
        (pa.array([None], pa.string()), {}),
        (pa.array([None]), {}),
        (pa.array(['{"half": "\\ud800"}']), {"half": "?"}),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_metadata_may_be_json_a_map_or_a_struct_and_can_be_written_as_json(
    tmp_path: Path, values: pa.Array, expected: dict[str, Any]
) -> None:
    path = table(tmp_path / "t.parquet", {"text": ["x"], "metadata": values})
    documents, dead = run(path, ReadSettings())
    assert not dead
    assert documents[0].metadata == expected


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("metadata", pa.array(["[1]"]), "bad_metadata"),
        ("metadata", pa.array(["{"]), "bad_metadata"),
        ("metadata", pa.array(['{"a":' * 100_000]), "bad_metadata"),
        ("metadata", pa.array(['{"a":' + "[" * 5_000 + "]" * 5_000 + "}"]), "bad_metadata"),
        ("acl_labels", pa.array([["a", None]]), "null_acl_label"),
        ("title", pa.array([b"\xff"]), "not_text"),
        ("blocks", pa.array([[{"text": "x", "page": 1, "box": [1.0]}]]), "bad_blocks"),
        ("blocks", pa.array([[{"text": "x", "page": "one"}]]), "bad_blocks"),
        ("blocks", pa.array([[{"text": b"\xff"}]]), "bad_blocks"),
    ],
)
def test_a_bad_value_loses_its_row_only(tmp_path: Path, column: str, values: pa.Array, reason: str) -> None:
    good = pa.array([None], values.type)
    path = table(
        tmp_path / "t.parquet",
        {"id": ["good", "bad"], "text": ["x", "y"], column: pa.concat_arrays([good, values])},
    )
    documents, dead = run(path)
    assert [d.document_id for d in documents] == ["good"]
    assert [(d.document_id, d.reason, d.source.row) for d in dead] == [("bad", reason, 1)]


def test_a_media_type_is_told_by_setting_column_or_text_in_that_order(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.parquet",
        {
            "text": ["x", "x", "x", None],
            "content": [None, None, None, b"x"],
            "media_type": ["text/html", None, None, None],
            "uri": [None, None, "web/a.md", None],
        },
    )
    documents, _ = run(path, ReadSettings())
    assert [d.media_type for d in documents] == ["text/html", "text/plain", None, None]
    assert [d.source.uri for d in documents] == [path, path, "web/a.md", path]
    documents, _ = run(path, ReadSettings(media_type="text/markdown"))
    assert {d.media_type for d in documents} == {"text/markdown"}


def test_blocks_become_text_with_spans(tmp_path: Path) -> None:
    blocks: list[dict[str, Any]] = [
        {"kind": "heading", "level": 9, "text": " Tëst ", "page": 1, "box": [0.0, 1.0, 2.0, 3.5]},
        {"kind": "paragraph", "text": "Body.", "page": 2, "images": ["a.png"], "attributes": {"lang": "en"}},
        {"kind": "paragraph", "text": ""},
        {"kind": "odd", "text": "Rest"},
        {"kind": "heading", "text": None},
    ]
    path = table(tmp_path / "t.parquet", {"blocks": [blocks, [], []], "text": ["not this", "but this", None]})
    documents, dead = run(path, ReadSettings())
    assert not dead
    assert documents[0].content == " Tëst \n\nBody.\n\nRest"
    assert documents[0].blocks == (
        Block("heading", 0, 6, 6, "Tëst", (Location(1, (0.0, 1.0, 2.0, 3.5)),)),
        Block("paragraph", 8, 13, None, None, (Location(2),), ("a.png",), {"lang": "en"}),
        Block("other", 15, 19),
    )
    assert (documents[1].content, documents[1].blocks) == ("but this", None)
    assert (documents[2].content, documents[2].blocks) == ("", ())


def test_column_names_with_dots_and_odd_characters_work(tmp_path: Path) -> None:
    path = table(tmp_path / "t.parquet", {"a.b": ["x"], "te xt": ["y"], "text": [1]})
    documents, _ = run(path, ReadSettings(columns={"document_id": "a.b", "text": "te xt"}))
    assert [(d.document_id, d.content) for d in documents] == [("x", "y")]


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": {"body": "text"}},
        {"charset": "utf-99"},
        {"max_document_bytes": 0},
        {"max_document_bytes": 2 << 30},
        {"task_bytes": 0},
        {"source_name": ""},
        {"input_format": "csv"},
        {"unknown": 1},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ReadSettings(**settings)


# --- tables: sizes, damage, bombs -----------------------------------------------------------------------


def test_row_groups_are_packed_into_tasks_by_bytes_and_rows_keep_their_positions(tmp_path: Path) -> None:
    texts = [f"{n} " + os.urandom(500).hex() for n in range(40)]
    path = table(tmp_path / "t.parquet", {"text": texts}, row_group_size=4, compression="none")
    (file,) = match([path])
    group_bytes = pq.ParquetFile(path).metadata.row_group(0).total_byte_size
    for task_bytes, tasks in ((1, 10), (group_bytes * 5 // 2, 5), (MIB, 1)):
        settings = ReadSettings(task_bytes=task_bytes)
        planned = [step for step in plan(file, settings) if isinstance(step, ReadTask)]
        assert len(planned) == tasks
        assert sum(task.documents for task in planned) == 40
        # Any task can be read alone and again.
        read_ = [d for task in reversed(planned) for d in read(task, settings) if isinstance(d, RawDocument)]
        assert {d.source.row: d.content for d in read_} == dict(enumerate(texts))
    assert len(pickle.dumps(planned[0])) < 1_000


def test_memory_is_bound_by_small_batches_whatever_the_row_group_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    original = tables.documents
    monkeypatch.setattr(
        tables,
        "documents",
        lambda batch, *a: seen.append((batch.num_rows, batch.nbytes)) or original(batch, *a),
    )
    text = pa.array([f"{n:04d} " + "word " * 50_000 for n in range(200)], pa.large_string())
    path = table(tmp_path / "one.parquet", {"text": text}, row_group_size=200, compression="zstd")
    assert os.path.getsize(path) < MIB
    documents, dead = run(path, ReadSettings())
    assert not dead
    assert sum(len(d.content) for d in documents) == 200 * 250_005
    assert max(size for _, size in seen) <= 10 * MIB
    assert min(rows for rows, _ in seen[:-1]) >= 2

    seen.clear()
    run(table(tmp_path / "small.parquet", {"text": [f"line {n}" for n in range(5_000)]}), ReadSettings())
    assert [rows for rows, _ in seen] == [1024, 1024, 1024, 1024, 904]


def test_a_large_row_is_refused_without_making_it_a_python_object(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.parquet",
        {"id": ["s", "l", "b"], "text": ["é" * 50, "é" * 51, None], "content": [None, None, b"x" * 101]},
    )
    documents, dead = run(path, ReadSettings(columns={"document_id": "id"}, max_document_bytes=100))
    assert [d.document_id for d in documents] == ["s"]
    assert [(d.document_id, d.reason) for d in dead] == [("l", "too_large"), ("b", "too_large")]
    assert "102 bytes" in dead[0].message
    assert "max_document_bytes is 100" in dead[0].message
    path = table(
        tmp_path / "t.parquet", {"blocks": [[{"text": "x" * 60}, {"text": "x" * 60}], [{"text": "x"}]]}
    )
    documents, dead = run(path, ReadSettings(max_document_bytes=100))
    assert len(documents) == 1
    assert [(d.reason, d.source.row) for d in dead] == [("too_large", 0)]


def test_a_damaged_page_loses_the_rest_of_its_row_group_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_BATCH_BYTES", MIB // 2)
    path = table(
        tmp_path / "t.parquet",
        {"id": [str(n) for n in range(300)], "text": [os.urandom(20_000).hex() for _ in range(300)]},
        row_group_size=100,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
        data_page_size=100_000,
        write_batch_size=1,
    )
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(1)
    data = bytearray(Path(path).read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0xFF
    Path(path).write_bytes(data)
    (file,) = match([path])
    (task,) = (step for step in plan(file, ID_TEXT) if isinstance(step, ReadTask))
    items = list(read(task, ID_TEXT))
    documents = [item for item in items if isinstance(item, RawDocument)]
    (dead,) = (item for item in items if isinstance(item, DeadLetter))
    assert dead.reason == "corrupt"
    assert len(documents) + dead.documents == 300
    assert 0 < dead.documents < 100
    rows = [d.source.row for d in documents]
    assert rows == [*range(200 - dead.documents), *range(200, 300)]
    assert f"row group 1, rows {200 - dead.documents} to 199: " in dead.message


def test_any_damage_gives_dead_letters_and_never_an_exception(tmp_path: Path) -> None:
    good = Path(table(tmp_path / "t.parquet", {"id": list("abcdef"), "text": ["text"] * 6}, row_group_size=2))
    data = good.read_bytes()
    for at in range(0, len(data), 5):
        for bits in (0x01, 0x80, 0xFF):
            good.write_bytes(data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :])
            documents, dead = run(str(good))
            assert documents or dead
    for size in range(0, len(data), 7):
        good.write_bytes(data[:size])
        documents, (dead_,) = run(str(good))
        assert not documents
        assert dead_.reason == "not_parquet"


def test_a_footer_that_counts_wrong_loses_no_rows_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "t.parquet", {"text": ["a", "b", "c", "d"]}, row_group_size=2)
    data = Path(path).read_bytes()
    count = data.rindex(b"\x16\x08")  # the number of rows, before the row groups
    Path(path).write_bytes(data[:count] + b"\x16\x00" + data[count + 2 :])
    assert pq.ParquetFile(path).metadata.num_rows == 0
    documents, (dead,) = run(path, ReadSettings())
    assert not documents
    assert dead.reason == "not_parquet"


def test_a_table_that_changed_or_vanished_after_it_was_planned_is_a_dead_letter(tmp_path: Path) -> None:
    path = table(tmp_path / "t.parquet", {"text": ["a", "b", "c"]})
    (task,) = plan(match([path])[0], ReadSettings())
    assert isinstance(task, ReadTask)
    table(path, {"text": ["d" * 99]})
    (dead,) = read(task, ReadSettings())
    assert isinstance(dead, DeadLetter)
    assert (dead.reason, dead.documents) == ("changed", 3)
    os.remove(path)
    (dead,) = read(task, ReadSettings())
    assert isinstance(dead, DeadLetter)
    assert (dead.reason, dead.documents) == ("unreadable", 3)
    assert "No such file or directory" in dead.message


def test_a_bomb_of_one_repeated_text_is_stopped_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_WORST_BATCH_BYTES", 16 * MIB)
    batches: list[int] = []
    original = tables.documents
    monkeypatch.setattr(
        tables, "documents", lambda batch, *a: batches.append(batch.nbytes) or original(batch, *a)
    )
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 3_000, pa.int32()), pa.array(["x" * MIB]))
    path = table(tmp_path / "t.parquet", {"text": texts}, compression="zstd", store_schema=False)
    assert os.path.getsize(path) < 1_000  # and it reads as 3 GB
    documents, (dead,) = run(path, ReadSettings())
    assert dead.reason == "bomb"
    assert len(documents) + dead.documents == 3_000
    assert max(batches) <= 16 * MIB
    assert sum(batches) <= 80 * MIB


def test_a_bomb_of_countless_rows_is_refused_by_its_footer(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), pa.array(["x"]))
    path = table(tmp_path / "t.parquet", {"text": texts}, compression="zstd")
    assert os.path.getsize(path) < 4_000
    documents, (dead,) = run(path, ReadSettings())
    assert not documents
    assert (dead.reason, dead.documents) == ("bomb", 1_000_000)


def test_what_repeats_honestly_is_no_bomb(tmp_path: Path) -> None:
    ids = [str(n) for n in range(200_000)]
    path = table(tmp_path / "t.parquet", {"id": ids, "text": ["ok"] * 200_000})
    (task,) = plan(match([path])[0], ID_TEXT)
    assert isinstance(task, ReadTask)
    assert task.documents == 200_000
