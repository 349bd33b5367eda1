"""Bytes become text by a stated rule, what was done is counted, and what is not text is refused."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.errors import ParseError
from transforms.parsers.decoding import Decoded, decode, known_charset, normalize

FERRY = "# Fähre\n\nAbfahrt 9:00\n"
TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cs"), include_characters="\n\t"))


@pytest.mark.parametrize("text", ["", "plain\n", "中文 and हिन्दी\n", "𝔘𝔫𝔦 👩‍👩‍👧\n"])
def test_utf8_with_line_feeds_is_taken_as_it_stands(text):
    decoded = decode(text.encode())
    assert decoded == Decoded(text, "utf-8")
    assert decoded.changes() == {}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_tells_the_encoding_and_is_removed(encoding):
    decoded = decode(("\ufeff" + FERRY).encode(encoding), charset="windows-1252")
    assert decoded == Decoded(FERRY, encoding, bom_removed=True)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [FERRY, "It’s “quoted” – and more of it, all in English.\n"])
def test_utf16_without_a_mark_is_never_read_byte_by_byte(encoding, text):
    assert decode(text.encode(encoding)) == Decoded(text, encoding)


def test_a_declared_charset_is_followed_where_the_bytes_are_of_it():
    assert decode("Köln\n".encode("cp1252"), "Windows-1252") == Decoded("Köln\n", "cp1252")
    assert decode("日本語\n".encode("shift_jis"), '"Shift_JIS"') == Decoded("日本語\n", "shift_jis")
    assert decode("中文\n".encode("utf-16-be"), "utf-16be").text == "中文\n"


@pytest.mark.parametrize(
    "charset",
    ["x-unknown", "", "utf-32", "us-ascii", "zlib", "punycode", "unicode_escape", "a\0b", "undefined"],
)
def test_a_charset_that_is_wrong_or_none_gives_way_to_utf8(charset):
    assert decode("aé中".encode(), charset).text == "aé中"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ('<!doctype html>\n<meta charset="shift_jis"><h1>日本①</h1>', "cp932"),
        (
            "<html><head><META content='text/html; charset=GB2312' http-equiv=content-type></head>朱镕基",
            "gb18030",
        ),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><a>café “open”</a>', "cp1252"),
        ("<!-- a comment -->\n<meta charset=koi8-r>Паром", "koi8-r"),
        ("#!/usr/bin/python\n# -*- coding: latin-1 -*-\nname = 'Fähre'\n", "cp1252"),
        ("# vim: set fileencoding=cp1250 :\nname = 'Łódź'\n", "cp1250"),
    ],
)
def test_what_html_xml_and_python_say_of_their_encoding_is_followed_where_the_bytes_are_not_utf8(
    text, encoding
):
    content = text.encode(encoding)
    assert decode(content) == Decoded(text, encoding)
    assert decode(content, on_undecodable="fail").text == text
    assert decode(text.encode()) == Decoded(text, "utf-8")
    assert decode(content, "iso-8859-2").encoding == "iso8859-2"
    assert decode(content.replace(b"\n", b"\xff\xfe\xfd\n") + b"\n").encoding == encoding


@pytest.mark.parametrize("label", ["utf-16", "utf-8", "x-unknown", "base64", "\u00e9"])
def test_a_text_that_says_what_it_cannot_be_is_read_as_utf8(label):
    content = f'<meta charset="{label}">caf'.encode() + b"\xe9"
    assert decode(content).text.endswith("caf\ufffd")


def test_prose_about_encodings_says_nothing_of_its_own():
    assert decode(b'Write `<meta charset="koi8-r">` in your caf\xe9.').encoding == "utf-8"


@pytest.mark.parametrize(
    "charset", ["idna", "punycode", "unicode_escape", "raw_unicode_escape", "base64", "rot13"]
)
def test_codecs_that_are_no_charsets_are_unknown(charset):
    assert known_charset(charset) is None


def test_bytes_of_no_encoding_are_replaced_and_counted():
    decoded = decode(bytes.fromhex("636166e92097206f70656e206461696c79"))
    assert decoded == Decoded("caf\ufffd \ufffd open daily", "utf-8", replacements=2)
    assert decoded.changes() == {"encoding": "utf-8", "replacements": 2}
    assert decode(bytes.fromhex("656e64206f662066696c6520e697")).replacements == 1


def test_replacement_characters_of_the_text_itself_do_not_count():
    assert decode("a\ufffdb".encode()).replacements == 0
    assert decode("a\ufffdb".encode() + b"\xff").replacements == 1


def test_a_declared_charset_with_one_bad_byte_keeps_the_rest():
    assert decode("日本語".encode("shift_jis") + b"\xff", "shift_jis").text == "日本語\ufffd"


def test_undecodable_bytes_are_read_in_the_encoding_of_the_policy():
    decoded = decode(b"caf\xe9 \x97 \x81", on_undecodable="windows-1252")
    assert decoded == Decoded("café — \ufffd", "cp1252", replacements=1)


def test_no_policy_overrules_a_byte_order_mark():
    assert decode(b"\xef\xbb\xbfcaf\xe9", on_undecodable="windows-1252").text == "caf\ufffd"


def test_undecodable_bytes_are_refused_if_the_policy_says_so():
    with pytest.raises(ParseError, match="--on_undecodable") as refused:
        decode(b"caf\xe9!", on_undecodable="fail")
    assert refused.value.reason == "undecodable"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG"),
        (b"GIF89a\x10\0\x10\0", "GIF"),
        (b"%PDF-1.7\n1 0 obj\n", "PDF"),
        (b"PK\x03\x04\x14\0", "ZIP"),
        (gzip.compress(b"text", mtime=0), "gzip"),
        (b"\x7fELF\x02\x01\x01", "ELF"),
        (b"SQLite format 3\0\x10\0", "SQLite"),
        (b"PAR1\x15\x04\x15\x10PAR1", "Parquet"),
        (b"a text\0with a zero", r"U\+0000"),
        (struct.pack("<64I", *range(64)), r"U\+0000"),
        (bytes(range(1, 32)) * 9, "control characters"),
        (bytes(range(1, 256)) * 9, "control characters"),
    ],
)
def test_what_is_not_text_is_refused_with_its_kind(content, named):
    with pytest.raises(ParseError, match=named) as refused:
        decode(content)
    assert refused.value.reason == "not_text"


@pytest.mark.parametrize(
    "content",
    [
        b"GIF89a and PAR1 are magic numbers.",
        b"PAR1 is the magic number of Parquet.",
        b"PK: initials",
        b"\x1b[31mred\x1b[0m\n" * 9,
        b"N\x08NA\x08AM\x08ME\x08E\n",
        b"DOS\r\n\x1a",
    ],
)
def test_text_that_looks_a_little_like_binary_is_read(content):
    assert decode(content).text.strip()


def test_line_ends_become_line_feeds_and_are_counted():
    assert normalize("a\r\nb\rc\nd\r\r\n") == Decoded("a\nb\nc\nd\n\n", newlines_normalized=4)
    assert normalize("a\u2028b\u2029c\x0bd\x85e").changes() == {}


def test_lone_surrogates_become_replacement_characters_and_are_counted():
    assert normalize("a\ud800b\udfff") == Decoded("a\ufffdb\ufffd", surrogates_replaced=2)


def test_one_leading_mark_of_a_str_is_removed():
    assert normalize("\ufeff\ufeffa\ufeff") == Decoded("\ufeffa\ufeff", bom_removed=True)


@given(TEXTS, st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]))
def test_every_text_survives_every_marked_encoding(text, encoding):
    assert decode(("\ufeff" + text).encode(encoding)).text == text


@given(TEXTS)
def test_every_text_survives_utf8(text):
    if not text.startswith("\ufeff"):
        assert decode(text.encode()) == Decoded(text, "utf-8")


@given(
    st.binary() | st.binary().map(lambda tail: b"text " * 99 + tail),
    st.none() | st.sampled_from(["utf-7", "big5"]),
)
def test_any_bytes_are_text_or_a_parse_error(content, charset):
    with suppress(ParseError):
        text = decode(content, charset).text
        assert "\r" not in text
        assert "\0" not in text
        assert text.encode().decode() == text


@given(st.text(st.characters()))
def test_normalizing_twice_changes_nothing_more(text):
    once = normalize(text)
    if not once.text.startswith("\ufeff"):
        assert normalize(once.text) == Decoded(once.text)
