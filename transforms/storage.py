"""Names of files and object stores, and how to reach what they name.

A name is taken literally: nothing in it is escaped, decoded, expanded or read as an option, so that the
stored name equals the object's. Credentials come from the environment of the process, never from a name.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import fsspec

from transforms.errors import ConfigError

# gcsfs reads this when it is imported; with the feature on, the first call to an emulator waits a minute.
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")

_STORED = {"local": "file", "gcs": "gs", "s3a": "s3"}
_STORES = {"gs": "gcs", "s3": "s3", "abfs": "abfs", "abfss": "abfs", "az": "abfs", "memory": "memory"}
_AZURE = ("abfs", "abfss", "az")
_INSTALL = {"gcs": "gcsfs", "s3": "'chunkmill[s3]'", "abfs": "'chunkmill[azure]'"}

# Of the machine, the network (whose errors are not all ConnectionErrors), and a store that is busy or broken.
_TRANSIENT = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EAGAIN),
    *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT),
    *(errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN, errno.ENETRESET),
    *(errno.EBUSY, getattr(errno, "EREMOTEIO", errno.EBUSY)),
}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Further on in a name `::` is two ordinary characters: no name is ever handed to fsspec's chains.
_CHAIN = re.compile(r"(?:[\w+.-]+://)?[^/]*::")
_USER = re.compile(r"^[^/@]*@")
# A secret key of S3 may hold slashes.
_USER_OF_STORE = re.compile(r"^(?!arn:)[^/@:]*:[^@]*@|^[^/@]*@")
# `?` is an ordinary character of object names, so only a signed query counts as a query there.
_SIGNATURE = re.compile(
    r"[?&](?:x-(?:amz|goog)-[\w-]{1,40}|[\w-]{0,20}(?:sig|signature|token|keyid|accessid))=", re.IGNORECASE
)


def filesystem(uri: str, *, setting: str = "uri") -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system that holds `uri`, and the path there.

    Args:
        uri: A local path, with or without `file://`, or a URI with one of the schemes `gs`, `gcs`, `s3`,
            `s3a`, `abfs`, `abfss`, `az`, `memory`.
        setting: Setting that errors name.

    Raises:
        ConfigError: If the scheme is none of these, its package is missing, or the URI is empty, is a chain
            (`::`), holds credentials, or the store refuses to be set up.
    """
    scheme, name = _split(uri)
    public = public_uri(uri)
    if not name or not uri:
        raise ConfigError(setting, public, "names no file or folder")
    if chain := _CHAIN.match(uri):
        # What follows is another URI, with secrets of its own.
        hint = "chained file systems (`::`) are refused; before a local name write ./"
        raise ConfigError(setting, f"{public_uri(chain[0])}...", hint)
    if scheme == "file":
        return fsspec.filesystem("file"), name
    if scheme not in _STORES:
        known = ", ".join(["file", *_STORED, *_STORES])
        raise ConfigError(setting, public, f"unknown scheme {scheme!r}; known are {known}")
    if public != f"{scheme}://{name}":
        raise ConfigError(setting, public, "credentials in a URI are refused; give them by the environment")

    protocol = _STORES[scheme]
    bucket, slash, key = name.partition("/")
    container, _, host = bucket.partition("@")
    options = {"account_name": host.partition(".")[0]} if host else {}
    try:
        store = fsspec.filesystem(protocol, **options)
    except ImportError as error:
        hint = f"{scheme}:// needs a package: pip install {_INSTALL.get(protocol, protocol)} ({error})"
        raise ConfigError(setting, public, hint) from error
    except ValueError as error:  # such as no account
        raise ConfigError(setting, public, str(error)) from error
    return store, f"/{name}" if scheme == "memory" else container + slash + key


def public_uri(uri: str) -> str:
    """The name of `uri` as it is stored and logged, and by which it can be opened again.

    A local file is its absolute path, without a scheme, character for character. An object is `scheme://` and
    its name as the store lists it, with `gs` for `gcs` and `s3` for `s3a`. User names, passwords and queries
    are cut off; of the name of an object, only a query that carries a signature.
    """
    scheme, name = _split(uri)
    if scheme == "file":
        return name
    if scheme not in _STORES:
        return f"{scheme}://{_USER.sub('', name.partition('?')[0])}"
    # abfss://container@account.dfs.core.windows.net/: what looks like a user is the container.
    if scheme not in _AZURE or ":" in name.partition("@")[0]:
        name = _USER_OF_STORE.sub("", name)
    if _SIGNATURE.search(name, max(name.find("?"), 0)) and "?" in name:
        name = name.partition("?")[0]
    return f"{scheme}://{name}"


def changed_at(info: Mapping[str, Any]) -> int | None:
    """Time of the last change of a file, microseconds since 1970 in UTC; None if the store does not tell.

    Args:
        info: What the store tells of the file; every store has names of its own.
    """
    keys = ("LastModified", "last_modified", "updated", "mtime", "created")
    value = next(filter(None, (info.get(key) for key in keys)), None)
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    return round(value * 1_000_000) if isinstance(value, (int, float)) else None


def is_transient(error: OSError) -> bool:
    """Whether trying again may help, so that the failure says nothing of the file."""
    if isinstance(error, (ConnectionError, TimeoutError)) or error.errno in _TRANSIENT:
        return True
    # A name that was not resolved; an answer that the store's package has no name for, such as that of a gateway.
    return (error.errno or 0) < 0 or (error.errno == errno.EIO and error.__cause__ is not None)


def _split(uri: str) -> tuple[str, str]:
    """The scheme as it is stored, and what follows it; for a local file its absolute path."""
    match = _SCHEME.match(uri)
    scheme = match[1].lower() if match else "file"
    name = uri[match.end() :] if match else uri
    scheme = _STORED.get(scheme, scheme)
    return (scheme, os.path.abspath(name)) if scheme == "file" else (scheme, name)
