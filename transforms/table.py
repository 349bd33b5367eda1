"""What a table holds: the files below its root, and what its manifests say of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic, sleep
from typing import IO, Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from transforms.errors import CommitError, ConfigError
from transforms.paths import FileEntry, prepare, staging
from transforms.provenance import canonical_json
from transforms.storage import changed_at, filesystem, public_uri

Manifest = dict[str, Any]
T = TypeVar("T")
S = TypeVar("S")

_THREADS = 8
_COPY_SECONDS = 600
# What a manifest may name, and so all that may ever be deleted for it.
DATA_FILE = re.compile(
    r"(chunks|documents|dead_letters|deletes|changes)/chunker=[a-z0-9_-]+/source=[a-z0-9_-]+"
    r"(/by_[a-z0-9_]+=[a-z0-9_-]+)*/part-[0-9]+-of-[0-9]+-[0-9a-f]{16}\.parquet"
)
COMMITS = "control/commits"
LATEST = "control/LATEST"
# Where files go that a commit replaced, by the path they had.
REPLACED = "control/replaced"


class Store:
    """The files below an output, by paths relative to it.

    Args:
        output: Root of the table.
        run_id: Run whose staging may hold files that are not whole yet.
    """

    def __init__(self, output: str, run_id: str) -> None:
        self._fs, root = filesystem(output)
        self._fs.invalidate_cache()
        self._root = root.rstrip("/")
        self.is_local: bool = getattr(self._fs, "local_file", False)
        self.staging = staging(run_id)
        self.waves = f"{self.staging}/waves"

    def at(self, path: str) -> str:
        """The full path."""
        return f"{self._root}/{path}"

    def names(self, folder: str) -> list[str]:
        """Names in a folder; none if it is missing."""
        try:
            return sorted(path.rpartition("/")[2] for path in self._fs.ls(self.at(folder), detail=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, folder: str) -> Iterator[tuple[str, int]]:
        """The files below a folder, each with the time of its last change in microseconds since 1970."""
        for path, info in self._fs.find(self.at(folder), detail=True).items():
            yield path.removeprefix(f"{self._root}/"), changed_at(info) or 0

    def opened(self, *paths: str) -> Any:
        """The first of some files that is there, for reading."""
        for path in paths[:-1]:
            with suppress(FileNotFoundError):
                return self._fs.open(self.at(path), "rb")
        return self._fs.open(self.at(paths[-1]), "rb")

    def opened_data(self, path: str) -> Any:
        """A data file for reading, also if a commit has replaced it: a writer may be tried again after that."""
        return self.opened(path, f"{REPLACED}/{path}")

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None if it is missing."""
        try:
            data: bytes = self._fs.cat_file(self.at(path))
        except FileNotFoundError:
            return None
        return data

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes | pa.Buffer]:
        """Parts of a file, each from a start to an end; from a store many at a time, on a disk as they lie there."""
        if self.is_local:
            with pa.memory_map(self.at(path)) as file:
                whole = file.read_buffer()
            return [whole.slice(start, end - start) for start, end in ranges]
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        parts: list[bytes] = self._fs.cat_ranges(
            [self.at(path)] * len(ranges), starts, ends, on_error="raise"
        )
        return parts

    def open(self, path: str) -> IO[bytes]:
        """A new file to write; in a store it is there once it is closed."""
        file: IO[bytes] = self._fs.open(prepare(self._fs, self.at(path)), "wb")
        return file

    def size(self, path: str) -> int | None:
        """Bytes of a file; None if it is missing."""
        try:
            size: int = self._fs.info(self.at(path))["size"]
        except FileNotFoundError:
            return None
        return size

    def write(self, path: str, data: bytes) -> None:
        """Write a file, in place of what is there; never half of it."""
        if self.is_local:
            self.move(self._whole(data), path)
        else:
            self._fs.pipe_file(self.at(path), data)

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not be there; of two writers one fails."""
        if not self.is_local:
            self._fs.pipe_file(self.at(path), data, mode="create")
            return
        # fsspec looks first and writes then, so that two writers may both succeed; a link cannot.
        whole = self._whole(data)
        target = prepare(self._fs, self.at(path))
        try:
            os.link(self.at(whole), target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with open(target, "xb") as file:
                file.write(data)

    def _whole(self, data: bytes) -> str:
        path = f"{self.staging}/{uuid4().hex}"
        self._fs.pipe_file(prepare(self._fs, self.at(path)), data)
        return path

    def move(self, path: str, target: str) -> None:
        """Move a file, in place of what is there.

        Raises:
            TimeoutError: If a store is not done with copying; nothing is lost.
        """
        if self.is_local:
            self._fs.mv(self.at(path), prepare(self._fs, self.at(target)))
            return
        # Not every server knows a request that moves, and of one whose answer was lost nobody knows if it was done.
        size = self._fs.info(self.at(path))["size"]
        self._fs.cp_file(self.at(path), self.at(target))
        # Azure answers before it has copied, and stops if what it copies goes away.
        end = monotonic() + _COPY_SECONDS
        while self.size(target) != size:
            if monotonic() > end:
                raise TimeoutError(f"{path} was not copied to {target} in {_COPY_SECONDS} seconds")
            sleep(0.2)
            self._fs.invalidate_cache()
        self._remove(path)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove those of the files that are there."""
        each(self._remove, paths)

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(self.at(path))

    def retire(self, path: str) -> None:
        """Move a file that a commit replaced to where earlier states of the table are kept, if it is there."""
        with suppress(FileNotFoundError):
            self.move(path, f"{REPLACED}/{path}")

    def clear_staging(self, *, keep_waves: bool = False) -> None:
        """Remove the staged files of the run.

        Args:
            keep_waves: Whether to leave what a rerun can go on with.
        """
        if keep_waves:
            self.remove(
                [path for path, _ in self.walk(self.staging) if not path.startswith(f"{self.waves}/")]
            )
            return
        with suppress(FileNotFoundError):
            self._fs.rm(self.at(self.staging), recursive=True)


def each(function: Callable[[S], T], values: Iterable[S]) -> list[T]:
    """`function` of each value, many at a time, since each call may wait for a store."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, values))


def to_json(value: object) -> bytes:
    """Canonical JSON of a value, in UTF-8."""
    # Halves of surrogate pairs, which names of files may hold, become the escapes that JSON has for them.
    return canonical_json(value).encode("utf-8", "backslashreplace")


class Table:
    """What the manifests say the table is.

    Args:
        output: Root of the table.
        upto: Number of the commit after which to look; None for the last.

    Attributes:
        seq: Number of the last commit; 0 if there is none.
        manifests: The manifests, oldest first.
        last: The last manifest.
        files: Entries of the current data files by path.

    Raises:
        CommitError: If a manifest is missing, or is none.
    """

    def __init__(self, output: str, upto: int | None = None) -> None:
        store = Store(output, "reader")
        names = [name for name in store.names(COMMITS) if re.fullmatch(r"\d{8}\.json", name)][:upto]
        self.seq = 0
        self.manifests: list[Manifest] = []
        self.last: Manifest | None = None
        self.files: dict[str, FileEntry] = {}
        for manifest in each(lambda name: read_manifest(store, f"{COMMITS}/{name}"), names):
            self.seq += 1
            if manifest is None or manifest["seq"] != self.seq:
                raise CommitError(f"{public_uri(output)}: the manifest of commit {self.seq} is missing")
            for path in manifest["removed"]:
                self.files.pop(path, None)
            self.files |= {entry["path"]: FileEntry(**entry, staged="") for entry in manifest["added"]}
            self.manifests.append(manifest)
            self.last = manifest

    @property
    def exists(self) -> bool:
        """Whether anything was ever committed."""
        return self.seq > 0

    @property
    def shards(self) -> int | None:
        """Shards of the table; None if there is no commit."""
        return self.last["shards"] if self.last else None

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Keys of the further folders of the chunks."""
        return tuple(self.last.get("partition_by", ())) if self.last else ()


def existing_table(output: str) -> Table:
    """What the manifests say the table is.

    Args:
        output: Root of the table.

    Raises:
        ConfigError: If there is no table.
        CommitError: If a manifest is missing, or is none.
    """
    table = Table(output)
    if not table.exists:
        raise ConfigError("table", public_uri(output), "holds no table")
    return table


def read_manifest(store: Store, path: str) -> Manifest | None:
    """A manifest; None if it is missing."""
    data = store.read(path)
    if data is None:
        return None
    try:
        manifest: Manifest = json.loads(data)
        paths = [*manifest["removed"], *(entry["path"] for entry in manifest["added"])]
    except (ValueError, KeyError, TypeError) as error:
        raise CommitError(f"{path} is no manifest: {error!r}") from error
    for name in paths:
        if not DATA_FILE.fullmatch(name):
            raise CommitError(f"{path} names {name!r}, which is no data file of a table")
    return manifest
