"""Bytes to text: which encoding, what had to be changed, and what is not text at all."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

from transforms.errors import ParseError

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FORMATS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "a PNG image"),
    (re.compile(rb"\xff\xd8\xff"), "a JPEG image"),
    (re.compile(rb"GIF8[79]a[^\n]*\0"), "a GIF image"),
    (re.compile(rb"%PDF-\d"), "a PDF document"),
    (re.compile(rb"PK(\x03\x04|\x05\x06)"), "a ZIP archive (or an office document)"),
    (re.compile(rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "an old Microsoft Office document"),
    (re.compile(rb"\x1f\x8b"), "gzip data"),
    (re.compile(rb"BZh[1-9]1AY&SY"), "bzip2 data"),
    (re.compile(rb"\xfd7zXZ\0"), "xz data"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "Zstandard data"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "a 7z archive"),
    (re.compile(rb"\x7fELF"), "an ELF executable"),
    (re.compile(rb"SQLite format 3\0"), "an SQLite database"),
    (re.compile(rb"PAR1[^\s -~]"), "a Parquet file"),
)
# Codecs that Python has for itself; in no document's charset, and some of them are quadratic.
_NOT_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "unicode-escape"}
# Text may hold white space, backspaces (printed manuals), escapes (coloured logs) and the end mark of DOS.
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b\x1a")) + b"\x7f"
_SAMPLE = 8192
# Share of zero bytes by which UTF-16 without a mark is told: Western text with its dashes and quotes.
_LATIN = 0.7
# All that is ASCII is UTF-8; and of the byte orders Python would take the machine's own.
_MEANT = {"ascii": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
# What HTML, XML and Python say of themselves, which is looked for where each of them does.
_OWN = re.compile(
    rb"""\A\s*<(?:[^\0]*?<)??(?:meta\s[^>]*?charset|\?xml\s[^>]*?encoding)\s*=[\s"']*([-\w.:]+)"""
    rb"|\A(?:#[^\n]*\n)?[ \t]*#[^\n]*?coding[:=][ \t]*([-\w.]+)",
    re.IGNORECASE,
)
_HEAD = 1024
# Names that the Web gives to encodings that hold more.
_WIDER = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Decoded(NamedTuple):
    """A text, and what was done to get it.

    Args:
        text: The text: no byte order mark, no carriage return, no surrogate.
        encoding: Python's name of its encoding; None for text that needed no decoding.
        bom_removed: Whether it began with a byte order mark.
        newlines_normalized: Line ends, CRLF or lone CR, that became LF.
        replacements: U+FFFD that stand for bytes that are not of this encoding.
        surrogates_replaced: Surrogates that became U+FFFD.
    """

    text: str
    encoding: str | None = None
    bom_removed: bool = False
    newlines_normalized: int = 0
    replacements: int = 0
    surrogates_replaced: int = 0

    def changes(self) -> dict[str, object]:
        """What was done, by field name; empty for UTF-8 that was taken as it stood."""
        _, encoding, *changed = self
        if encoding in (None, "utf-8") and not any(changed):
            return {}
        return {name: value for name, value in self._asdict().items() if value and name != "text"}


def encoded(text: str) -> tuple[bytes, bool]:
    """A text in UTF-8, and whether it has surrogates, which stand in it as UTF-8 would have them.

    Args:
        text: The text.
    """
    try:
        return text.encode(), False
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass"), True


def normalize(text: str, has_surrogates: bool | None = None) -> Decoded:
    """Normalise text that needs no decoding: byte order mark, line ends, surrogates.

    Args:
        text: The text.
        has_surrogates: Whether it has surrogates, if that is known.
    """
    marked = text.startswith("\ufeff")
    if marked:
        text = text[1:]
    newlines = 0
    if "\r" in text:
        newlines = text.count("\r\n")
        text = text.replace("\r\n", "\n")
        newlines += text.count("\r")
        text = text.replace("\r", "\n")
    surrogates = 0
    if not text.isascii() and (encoded(text)[1] if has_surrogates is None else has_surrogates):
        text, surrogates = _SURROGATE.subn("\ufffd", text)
    return Decoded(text, None, marked, newlines, 0, surrogates)


def decode(content: bytes, charset: str | None = None, on_undecodable: str = "replace") -> Decoded:
    """Decode and normalise the bytes of a text.

    The encoding is told by a byte order mark; else by the zero in every other byte of UTF-16; else it is
    `charset`, if Python knows it and the bytes are of it; else UTF-8, if they are; else what HTML (`<meta charset>`),
    XML or Python says of itself, if nothing else was declared; else `on_undecodable` decides.

    Args:
        content: The bytes.
        charset: Declared character set, if any.
        on_undecodable: `replace` puts U+FFFD for what is not of the encoding told, UTF-8 if none is; the name
            of an encoding reads the bytes in that one; `fail` refuses them.

    Raises:
        ParseError: `not_text` for what is text in no encoding; `undecodable` if `on_undecodable` is `fail`.
    """
    for pattern, name in _FORMATS:
        if pattern.match(content):
            raise ParseError("not_text", f"the bytes are {name}, not text")
    told = _told_by_bytes(content)
    declared = known_charset(charset)
    encoding, text, replacements = _decoded(content, told, declared, on_undecodable)
    _refuse_binary(text, replacements)
    return normalize(text)._replace(encoding=encoding, replacements=replacements)


def known_charset(label: str | None) -> str | None:
    """Python's name of a character set, or None if Python does not know it."""
    try:
        name = codecs.lookup((label or "").strip("\"' ")).name
        b"\n".decode(name, "ignore")  # Refused by codecs that make no text.
    except (LookupError, ValueError):
        return None
    return None if name in _NOT_CHARSETS else _MEANT.get(name, name)


def _told_by_bytes(content: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    if b"\0" in content and len(content) % 2 == 0:
        even, odd = content[:_SAMPLE:2], content[1:_SAMPLE:2]
        for high, low, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
            if b"\0" not in low and high.count(b"\0") > _LATIN * len(high):
                return encoding
    return None


def _told_by_text(content: bytes) -> str | None:
    found = _OWN.match(content, 0, _HEAD)
    name = found and known_charset((found[1] or found[2]).decode("ascii", "replace"))
    # What says so in ASCII is not of two bytes a character.
    return None if not name or name.startswith(("utf-16", "utf-32")) else _WIDER.get(name, name)


def _candidates(content: bytes, told: str | None, declared: str | None) -> Iterator[str]:
    """The encodings to try, the likeliest first; what the text says is looked for only where it is not UTF-8."""
    yield told or declared or "utf-8"
    if declared and not told:
        yield "utf-8"
    elif not told and (own := _told_by_text(content)):
        yield own


def _decoded(
    content: bytes, told: str | None, declared: str | None, on_undecodable: str
) -> tuple[str, str, int]:
    tried: list[str] = []
    for encoding in _candidates(content, told, declared):
        tried.append(encoding)
        try:
            return encoding, content.decode(encoding), 0
        except UnicodeError as error:
            last = str(error)  # the error holds this call, which holds the bytes
    if on_undecodable == "fail":
        raise ParseError(
            "undecodable",
            f"the bytes are not {' or '.join(dict.fromkeys(tried))} ({last}); "
            "declare their charset, or set --on_undecodable to 'replace' or to an encoding",
        )
    # No policy overrules what the bytes themselves tell.
    encoding = told or known_charset(on_undecodable) or declared or tried[-1]
    text = content.decode(encoding, "replace")
    # The text may have held U+FFFD of its own.
    return encoding, text, text.count("\ufffd") - content.decode(encoding, "ignore").count("\ufffd")


def _refuse_binary(text: str, replacements: int) -> None:
    zero = text.find("\0")
    if zero >= 0:
        raise ParseError("not_text", f"character {zero} is U+0000, which no text holds")
    sample = text[:_SAMPLE]
    encoded = sample.encode("utf-8", "replace")
    controls = len(encoded) - len(encoded.translate(None, _CONTROLS))
    # Bytes that are of no encoding and control characters together are the mark of binary data.
    if controls > len(sample) * (0.05 if replacements else 0.3):
        raise ParseError(
            "not_text", f"{controls} of the first {len(sample)} characters are control characters"
        )
