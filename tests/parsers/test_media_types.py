"""A file name tells the media type the same way on every machine."""

from __future__ import annotations

import mimetypes

import pytest

from transforms.parsers.media_types import is_text, media_type_of, split_media_type

TEXTS = (
    "md txt html rst adoc json jsonl csv tsv xml py js mjs cjs jsx ts tsx go java rs c h cpp cs rb php sh "
    "sql yaml toml ini tex ipynb eml log"
)
BINARIES = "pdf png jpg svg docx xlsx pptx doc epub zip parquet mp3 mp4 woff2 exe"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("README.md", "text/markdown"),
        ("a/b.c/notes.MarkDown", "text/markdown"),
        ("gs://bucket/x.mdown", "text/markdown"),
        ("a.txt", "text/plain"),
        ("a.text", "text/plain"),
        ("page.HTM", "text/html"),
        ("data.jsonl", "application/jsonl"),
        ("video-that-is-code.ts", "text/typescript"),
        ("scan.pdf", "application/pdf"),
        ("archive.tar.gz", "application/gzip"),
        ("odd name #1?.csv", "text/csv"),
    ],
)
def test_the_extension_tells_the_media_type_in_any_case(name, media_type):
    assert media_type_of(name) == media_type


@pytest.mark.parametrize("name", ["", "README", ".md", "a.md/", "dir.md/file", "a.", "a.unheardof"])
def test_a_name_without_a_known_extension_tells_nothing(name):
    assert media_type_of(name) is None


def test_the_system_database_is_not_asked(monkeypatch):
    monkeypatch.setitem(mimetypes.types_map, ".unheardof", "text/x-unheard-of")
    assert media_type_of("a.unheardof") is None


@pytest.mark.parametrize("extension", TEXTS.split())
def test_source_and_data_formats_are_text(extension):
    assert is_text(media_type_of(f"a.{extension}"))


@pytest.mark.parametrize("extension", BINARIES.split())
def test_binary_formats_are_not_text(extension):
    assert not is_text(media_type_of(f"a.{extension}"))


@pytest.mark.parametrize(
    ("declared", "media_type", "charset"),
    [
        ("text/plain; charset=x", "text/plain", "x"),
        (' Text/HTML ;Charset="UTF-8"; q=1', "text/html", "UTF-8"),
        ("text/x-markdown", "text/markdown", None),
        ("application/x-ndjson", "application/jsonl", None),
        ("text/plain; charset=", "text/plain", None),
        ("application/octet-stream", None, None),
        ("", None, None),
        (None, None, None),
        (";;;", None, None),
    ],
)
def test_a_declared_type_is_split_and_takes_its_usual_name(declared, media_type, charset):
    assert split_media_type(declared) == (media_type, charset)
