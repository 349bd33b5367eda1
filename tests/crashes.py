"""A process that dies in the middle of an operation on its output."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from transforms import commit, shards, table
from transforms.storage import filesystem


def tree(output: str) -> dict[str, bytes]:
    """All files below `output`, by relative path."""
    fs, root = filesystem(output)
    return {path[len(root) + 1 :]: fs.cat_file(path) for path in fs.find(root)} if fs.exists(root) else {}


class DeathError(Exception):
    """The process is gone."""


class Dying:
    """A file system whose process dies in the middle of its n-th operation; nothing works from then on."""

    OPERATIONS = frozenset({"cat_file", "info", "ls", "makedirs", "mv", "open", "pipe_file", "rm", "rm_file"})

    def __init__(self, fs: fsspec.AbstractFileSystem, alive: list[int]) -> None:
        self._fs = fs
        self._alive = alive
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fs, name)
        return self._guarded(name, found) if name in self.OPERATIONS else found

    def _guarded(self, name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(path: str, *args: Any, **options: Any) -> Any:
            with self._lock:
                self._alive[0] -= 1
                alive = self._alive[0]
            if alive >= 0:
                return operation(path, *args, **options)
            if alive == -1 and name == "rm":  # half of the folder is gone
                for half in self._fs.find(path)[::2]:
                    self._fs.rm_file(half)
            if alive == -1 and name == "pipe_file" and getattr(self._fs, "local_file", False):
                self._fs.pipe_file(path, args[0][: len(args[0]) // 2])  # half of the file is written
            raise DeathError(name)

        return guarded


def copy(source: str, target: str) -> None:
    """Copy a whole output."""
    if source.startswith("memory:"):
        fs = fsspec.filesystem("memory")
        for path, data in tree(source).items():
            fs.pipe_file(f"{target.removeprefix('memory:/')}/{path}", data)
    else:
        Path(source).mkdir(exist_ok=True)
        shutil.copytree(source, target)


def dies_after(operations: int, action: Callable[..., object], *arguments: object) -> bool:
    """Whether a process does not come to the end of `action` if it dies in its n-th operation on its output."""
    alive = [operations]
    with pytest.MonkeyPatch.context() as patch:
        for module in (commit, shards, table):
            patch.setattr(module, "filesystem", lambda uri: dying(uri, alive))
        try:
            action(*arguments)
        except DeathError:
            return True
    return False


def dying(uri: str, alive: list[int]) -> tuple[Any, str]:
    """`filesystem`, of a process that dies."""
    fs, path = filesystem(uri)
    return Dying(fs, alive), path
