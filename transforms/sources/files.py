"""Which files an input names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import fsspec

from transforms.errors import ConfigError
from transforms.fingerprint import fingerprint
from transforms.path_patterns import whole_path
from transforms.records import DeadLetter, Source
from transforms.storage import changed_at, filesystem, public_uri

Format = Literal["parquet", "object"]

# No more than these: a name that merely begins with `_`, such as `__init__.py`, is a document.
_MARKERS = re.compile(
    r"_(?:SUCCESS|metadata|common_metadata|spark_metadata|temporary|delta_log|change_data|symlink_format_manifest)"
    r"|_(?:started|committed)_\d+|_.*\.crc"
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the input, as it was when it was listed.

    Args:
        uri: Its name, without credentials; it can be opened by it.
        size: Bytes.
        etag: Entity tag, if the store has one.
        version: Generation or version id, if the store has one.
        modified_at: Time of its last change, microseconds since 1970 in UTC.
        format: `parquet` for a table of documents, `object` for one document.
    """

    uri: str
    size: int
    etag: str | None = None
    version: str | None = None
    modified_at: int | None = None
    format: Format = "object"

    @property
    def state(self) -> str | None:
        """Digest of what the store told of the file; None if that was no more than its size, which proves nothing."""
        return _state(self.size, self.version, self.etag, self.modified_at)

    def source(self, name: str) -> Source:
        """The file as the source of what it holds."""
        told = (self.version, self.etag, self.size, self.modified_at)
        return Source(name, self.uri, None, *told, input_state=self.state)

    def failed(self, name: str, reason: str, message: str, documents: int = 1) -> DeadLetter:
        """What becomes of the file, or of `documents` in it, when it cannot be read."""
        text = f"{self.uri}: {message}"
        return DeadLetter(self.uri, "read", reason, text, self.source(name), documents)


def match(
    patterns: Sequence[str], *, allow_empty: bool = False, input_format: Literal["auto"] | Format = "auto"
) -> list[SourceFile]:
    """The files that `patterns` name, each once, sorted by URI.

    A name that exists is that file, whatever characters it has, or all that is below that folder. Any other
    is a pattern of `transforms.path_patterns`, with one meaning on disks and in object stores. A folder that
    exists by its exact name is no pattern either: `a[1]/*.md` looks into `a[1]`.

    Patterns and folders leave out names that begin with `.`, what Spark, Hive and Delta Lake put beside the files
    of a table (`_SUCCESS`, `_metadata`, `_temporary`, `_delta_log`, ...), and all below such a folder. On disks a
    folder is read once even if links lead to it again.

    Args:
        patterns: Names and patterns.
        allow_empty: Whether one that matches nothing is no error.
        input_format: What the files are; `auto` takes `*.parquet` for tables of documents.

    Raises:
        ConfigError: If one matches nothing or cannot be listed; it is named.
    """
    found: dict[str, SourceFile] = {}
    names = [patterns] if isinstance(patterns, str) else patterns
    for pattern in names:
        shown = public_uri(pattern) if "://" in pattern else pattern
        try:
            files = {file.uri: file for file in _find(pattern, input_format)}
        except ConfigError:
            raise
        except Exception as error:  # each store has its own kinds
            raise ConfigError("input", shown, f"cannot be listed: {error}") from error
        if not files and not allow_empty:
            hint = "matches no file; names that begin with . are left out, `chunkmill run --allow_empty` accepts it"
            raise ConfigError("input", shown, hint)
        found |= files
    if not names and not allow_empty:
        raise ConfigError("input", [], "names no file")
    return [found[uri] for uri in sorted(found)]


def names(pattern: str, uri: str) -> bool:
    """Whether `pattern` would name a file at `uri`, if there were one.

    Args:
        pattern: As for `match`.
        uri: Name of the file, as `public_uri` gives it.
    """
    return naming(pattern)(uri)


def naming(pattern: str) -> Callable[[str], bool]:
    """A test whether `pattern` would name a file at a URI, for many of them.

    Args:
        pattern: As for `match`.
    """
    store, path = filesystem(pattern, setting="input")
    root, wanted = (path, []) if store.isdir(path) else _fixed_prefix(store, path)
    is_wanted = whole_path("/".join(wanted or ["**"]))

    def would_name(uri: str) -> bool:
        _, other = filesystem(uri)
        inside = other.removeprefix(root.rstrip("/") + "/")
        if inside == other:
            return other == path
        return not any(map(_is_hidden, inside.split("/"))) and bool(is_wanted.match(inside))

    return would_name


def address_id(uri: str, row: int | None = None) -> str:
    """Id of a document that has no other: 32 hex digits of its address."""
    return hashlib.sha256(f"{'' if row is None else row} {uri}".encode()).hexdigest()[:32]


@lru_cache(maxsize=1024)
def _state(size: int, *told: object) -> str | None:
    return fingerprint({"size": size, "told": told}) if any(told) else None


def _find(pattern: str, input_format: Literal["auto"] | Format) -> Iterator[SourceFile]:
    store, path = filesystem(pattern, setting="input")
    store.invalidate_cache()
    uri = public_uri(pattern)
    names_folder = pattern.endswith("/")
    if names_folder:
        path, uri = path.rstrip("/") or "/", uri.rstrip("/")
    try:
        info = store.info(path)
    except (FileNotFoundError, NotADirectoryError):
        info = {"type": None}
    if info["type"] == "file" and not names_folder:
        yield _source_file(uri, info, input_format)
        return
    if info["type"] == "other":
        raise ConfigError("input", uri, "is neither a file nor a folder")

    root = path
    wanted: list[str] = []
    if info["type"] != "directory":
        root, wanted = _fixed_prefix(store, path)
        uri = uri.removesuffix("/".join(wanted)).rstrip("/")
        if not wanted:
            return
    if names_folder or not wanted:
        wanted.append("**")
    is_wanted = _wanted(wanted, uri).match
    for info in _listed(store, root or "/", deep=len(wanted) > 1 or wanted == ["**"]):
        name = info["name"].removeprefix(root.rstrip("/") + "/")
        parts = name.split("/")
        is_file = info["type"] == "file" and name != info["name"] and parts[-1]
        if is_file and not any(map(_is_hidden, parts)) and is_wanted(name):
            yield _source_file(f"{uri}/{name}", info, input_format)


def _fixed_prefix(store: fsspec.AbstractFileSystem, path: str) -> tuple[str, list[str]]:
    """The folder to list, and the pattern of what is in it; no pattern if nothing in `path` could be one."""
    parts = path.split("/")
    for at, part in enumerate(parts):
        if any(c in part for c in "*?[") and not store.isdir("/".join(parts[: at + 1])):
            if not at:
                raise ConfigError("input", path, "the name of a bucket cannot be a pattern")
            return "/".join(parts[:at]), parts[at:]
    return path, []


def _listed(store: fsspec.AbstractFileSystem, root: str, *, deep: bool) -> Iterable[Mapping[str, Any]]:
    if not store.isdir(root):
        return ()
    if "file" in store.protocol:
        return _walk(store, root, deep=deep)
    found: Iterable[Mapping[str, Any]] = (
        store.find(root, detail=True).values() if deep else store.ls(root, True)
    )
    return found


def _walk(store: fsspec.AbstractFileSystem, root: str, *, deep: bool) -> Iterator[Mapping[str, Any]]:
    def refuse(error: OSError) -> None:
        raise error

    seen: set[tuple[int, int]] = set()
    tops = [root]
    # Links are followed after all real folders, so that a folder goes by its own name and loops end.
    while tops:
        links: list[str] = []
        for top in tops:
            for folder, folders, names in os.walk(top, onerror=refuse):
                status = os.stat(folder)
                if (status.st_dev, status.st_ino) in seen:
                    folders.clear()
                    continue
                seen.add((status.st_dev, status.st_ino))
                folders[:] = sorted(name for name in folders if deep and not _is_hidden(name))
                links += [path for name in folders if os.path.islink(path := os.path.join(folder, name))]
                yield from (_local_info(store, os.path.join(folder, name)) for name in names)
        tops = links


def _local_info(store: fsspec.AbstractFileSystem, path: str) -> Mapping[str, Any]:
    try:
        info: Mapping[str, Any] = store.info(path)
    except OSError:  # such as a link to nothing: reading it will say so
        return {"name": path, "type": "file"}
    return info


def _is_hidden(name: str) -> bool:
    # Keys of object stores may hold `..`, which hides nothing there.
    return (name.startswith(".") and name not in (".", "..")) or bool(_MARKERS.fullmatch(name))


def _wanted(names: Sequence[str], uri: str) -> re.Pattern[str]:
    try:
        return whole_path("/".join(names))
    except ValueError as error:
        raise ConfigError("input", uri, str(error)) from None


def _source_file(uri: str, info: Mapping[str, Any], input_format: Literal["auto"] | Format) -> SourceFile:
    # A local name that is not UTF-8 cannot be stored; shown with escapes it is not found when it is read.
    uri = uri.encode("utf-8", "backslashreplace").decode()
    version = info.get("generation") or info.get("VersionId") or info.get("version_id")
    etag = info.get("ETag") or info.get("etag")
    if input_format == "auto":
        input_format = "parquet" if uri.lower().endswith(".parquet") else "object"
    return SourceFile(
        uri=uri,
        size=int(info.get("size") or 0),
        etag=etag.strip('"') if etag else None,
        version=str(version) if version and version != "null" else None,
        modified_at=changed_at(info),
        format=input_format,
    )
