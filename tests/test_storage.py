from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest

from transforms.errors import ConfigError
from transforms.storage import filesystem, public_uri

ODD_NAMES = [
    "a[1].md",
    "q?.md",
    "b#c.md",
    "100%25.md",
    "sp ace.md",
    "日本.md",
    "star*.md",
    "plus+.md",
    "std::vector.md",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_local_name_is_taken_literally_with_and_without_scheme(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(name)
    for uri in (str(path), f"file://{path}", f"local://{path}"):
        files, found = filesystem(uri)
        assert found == public_uri(uri) == str(path)
        assert files.cat_file(found).decode() == name


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_name_of_an_object_is_taken_literally(name: str) -> None:
    uri = f"memory://bucket/in/{name}"
    files, path = filesystem(uri)
    assert public_uri(uri) == uri
    assert path == f"/bucket/in/{name}"
    assert files is fsspec.filesystem("memory")
    assert public_uri(f"gs://bucket/{name}") == f"gs://bucket/{name}"
    assert public_uri(f"s3://bucket/{name}") == f"s3://bucket/{name}"


def test_a_relative_local_path_is_made_absolute_and_a_tilde_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert filesystem("in/a.md")[1] == public_uri("in/a.md") == str(tmp_path / "in/a.md")
    assert filesystem("~/a.md")[1] == str(tmp_path / "~/a.md")


@pytest.mark.parametrize(
    ("uri", "stored"),
    [
        ("gcs://b/k", "gs://b/k"),
        ("GS://b/k", "gs://b/k"),
        ("s3a://b/k", "s3://b/k"),
        ("s3://b/../k//x", "s3://b/../k//x"),
        (
            "s3://arn:aws:s3:eu-west-1:123:accesspoint/x/me@home",
            "s3://arn:aws:s3:eu-west-1:123:accesspoint/x/me@home",
        ),
        ("abfss://box@account.dfs.core.windows.net/k", "abfss://box@account.dfs.core.windows.net/k"),
    ],
)
def test_one_object_has_one_stored_name(uri: str, stored: str) -> None:
    assert public_uri(uri) == stored
    assert public_uri(stored) == stored


@pytest.mark.parametrize(
    "uri",
    [
        "s3://AKIA:SECRET@bucket/key",
        "s3://AKIA:SE/SECRET/CRET@bucket/key",
        "s3://SECRET@bucket/key",
        "abfss://box:SECRET@account.dfs.core.windows.net/key",
        "abfss://box@account.dfs.core.windows.net/key?sv=1&sig=SECRET",
        "gs://bucket/key?X-Goog-Signature=SECRET",
        "s3://bucket/key?a=b&X-Amz-Credential=SECRET",
        "https://user:SECRET@host/key?a=SECRET",
        "ftp://user:SECRET@host/key",
        "https://host?SECRET",
    ],
)
def test_a_secret_in_a_uri_is_refused_and_never_shown(uri: str) -> None:
    assert "SECRET" not in public_uri(uri)
    with pytest.raises(ConfigError) as caught:
        filesystem(uri)
    assert "SECRET" not in str(caught.value)
    assert b"SECRET" not in pickle.dumps(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "simplecache::s3://bucket/key",
        "zip://*.csv::file:///tmp/x.zip",
        "memory://a::file:///etc/passwd",
        "filecache::memory://a",
        "s3://bucket::memory://a",
        "std::vector.md",
        "http://host/key",
        "unknown://x",
        "",
        "s3://",
    ],
)
def test_chains_unknown_schemes_and_empty_names_are_refused_by_the_setting_that_holds_them(uri: str) -> None:
    with pytest.raises(ConfigError) as caught:
        filesystem(uri, setting="output")
    assert caught.value.setting == "output"


@pytest.mark.parametrize(
    ("uri", "protocol", "install"),
    [
        ("s3://b/k", "s3", "pip install 'chunkmill[s3]'"),
        ("abfss://c@account.dfs.core.windows.net/k", "abfs", "pip install 'chunkmill[azure]'"),
        ("gs://b/k", "gcs", "pip install gcsfs"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, uri: str, protocol: str, install: str
) -> None:
    def missing(name: str, **options: object) -> None:
        assert name == protocol
        raise ImportError("No module named x")

    monkeypatch.setattr(fsspec, "filesystem", missing)
    with pytest.raises(ConfigError, match="needs a package") as caught:
        filesystem(uri)
    assert install in str(caught.value)


def test_an_azure_account_is_taken_from_the_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec, "filesystem", lambda protocol, **options: (protocol, options))
    found, path = filesystem("abfss://box@account.dfs.core.windows.net/a/b.md")
    assert found == ("abfs", {"account_name": "account"})
    assert path == "box/a/b.md"


def test_gcsfs_is_told_not_to_probe_for_experimental_buckets() -> None:
    code = "import os, transforms.storage; print(os.environ['GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT'])"
    for given, expected in ((None, "false"), ("true", "true")):
        env = {k: v for k, v in os.environ.items() if k != "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"}
        if given:
            env["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = given
        shown = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert shown.stdout.strip() == expected
