"""Parsers: what turns a document as it was read into text and blocks. Pure; Beam is not needed here."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from transforms.errors import ParseError
from transforms.fingerprint import digest_of
from transforms.parsers.asciidoc import parse_asciidoc
from transforms.parsers.decoding import decode, encoded, known_charset, normalize
from transforms.parsers.delimited import parse_delimited
from transforms.parsers.html_text import parse_html
from transforms.parsers.markdown import parse_markdown
from transforms.parsers.media_types import OCR, is_text, media_type_of, split_media_type
from transforms.parsers.ocr import OCR_PARSER, read_ocr
from transforms.parsers.plain_text import parse_plain_text
from transforms.parsers.position_tags import locate, take_tags
from transforms.parsers.restructured_text import parse_restructured_text
from transforms.records import Block, Document, RawDocument

__all__ = ["PARSERS", "ParseSettings", "Parser", "blocks_of", "parse", "parsers_of"]

_REMOVED = re.compile("\\A\ufeff|\r(?=\n)")


class ParseSettings(BaseModel):
    """How documents are parsed.

    Args:
        on_undecodable: What to do with bytes that are of no encoding told for them: `replace` puts U+FFFD
            and counts, an encoding such as `windows-1252` reads the document in that one, `fail` makes it a
            dead letter.
        max_text_bytes: Largest document, in bytes as read. For larger ones raise it, and workers' memory.
        markdown: Whether to find the blocks of Markdown, HTML and tables now. If not, a chunker that needs them
            does.
        position_tags: Whether texts hold RAGFlow's position tags (`@@page\\tx0\\tx1\\ttop\\tbottom##`), to be taken
            out of the text and told as the locations of what they follow.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    on_undecodable: str = "replace"
    max_text_bytes: int = Field(default=64 * 2**20, ge=1)
    markdown: bool = True
    position_tags: bool = False

    @field_validator("on_undecodable")
    @classmethod
    def _is_a_policy(cls, value: str) -> str:
        if value not in {"replace", "fail"} and not known_charset(value):
            raise ValueError(f"{value!r} is neither 'replace' nor 'fail' nor an encoding that Python knows")
        return value


@dataclass(frozen=True, slots=True)
class Parser:
    """A way to find the structure of a text.

    Args:
        name: Name, as documents record it.
        version: Raised when the same text gives other blocks.
        read: Blocks and metadata of a text.
    """

    name: str
    version: str
    read: Callable[[str], tuple[tuple[Block, ...], Mapping[str, object]]]


_PLAIN_TEXT = Parser("plain_text", "1", parse_plain_text)
_DELIMITED = Parser("delimited", "1", parse_delimited)
PARSERS: dict[str, Parser] = {
    "text/plain": _PLAIN_TEXT,
    "text/asciidoc": Parser("asciidoc", "2", parse_asciidoc),
    "text/csv": _DELIMITED,
    "text/html": Parser("html", "2", parse_html),
    "text/markdown": Parser("markdown", "2", parse_markdown),
    "text/tab-separated-values": _DELIMITED,
    "text/x-rst": Parser("restructured_text", "1", parse_restructured_text),
}


def parse(raw: RawDocument, settings: ParseSettings) -> Document:
    """The document that `raw` holds.

    Text of a media type without a parser is read as plain text. Blocks that came with the text are taken as
    they are, moved where normalising the text moved it. The metadata gain `decoding`, what was done to get
    the text, and `front_matter`.

    An OCR result, told by media type or a name that ends in `.ocr.json`, becomes the document that was scanned.

    Raises:
        ParseError: `too_large`; `no_parser` for a binary format; `not_text` or `undecodable`, see `decode`;
            `bad_blocks` if the blocks that came with the text do not fit it; `bad_ocr` for what should be an OCR
            result and is none.
    """
    content = raw.content
    # To encode a text costs as much as to read it; few need it, since no character takes more than four bytes.
    if (
        4 * len(content) > settings.max_text_bytes
        and (size := len(encoded(content)[0] if isinstance(content, str) else content))
        > settings.max_text_bytes
    ):
        raise ParseError(
            "too_large",
            f"{size} bytes are more than {settings.max_text_bytes}; raise --max_text_bytes to read it",
        )
    declared, charset = split_media_type(raw.media_type)
    # The name of an object that holds many documents says nothing of them.
    named = media_type_of(raw.source.uri) if raw.source.row is None else None
    media_type = declared or named or "text/plain"
    if isinstance(content, str):
        decoded = normalize(content, has_surrogates=False if raw.digest else None)
    elif is_text(media_type):
        decoded = decode(content, raw.charset or charset, settings.on_undecodable)
    else:
        raise ParseError("no_parser", f"there is no parser of {media_type}; give its text, or leave it out")

    source, digest = raw.source, raw.digest
    if not source.content_sha256:
        digest = digest or digest_of(content)
        source = replace(source, content_sha256=digest.sha256)
    metadata = dict(raw.metadata)
    if changes := decoded.changes():
        metadata["decoding"] = changes
    facts: dict[str, Any] = {
        "document_id": raw.document_id,
        "language": raw.language,
        "license": raw.license,
        "acl_labels": raw.acl_labels,
        "tenant_id": raw.tenant_id,
        "source": source,
    }
    if media_type == OCR and raw.blocks is None:
        scanned = read_ocr(decoded.text).to_document(**facts, title=raw.title, metadata=metadata)
        return replace(scanned, media_type=media_type)

    parser = PARSERS.get(media_type, _PLAIN_TEXT)
    blocks = raw.blocks
    if blocks is not None:
        encoding = decoded.encoding or "utf-8"
        before = content.decode(encoding, "replace") if isinstance(content, bytes) else content
        blocks = _moved(blocks, before)
    text = decoded.text
    located: tuple[Block, ...] = ()
    if settings.position_tags:
        text, located = take_tags(text, blocks or ())
    if blocks is not None:
        blocks = located if settings.position_tags else blocks
    elif settings.markdown or located or parser is _PLAIN_TEXT:
        blocks, found = parser.read(text)
        blocks = locate(blocks, located) if located else blocks
        metadata |= found
    try:
        document = Document(
            **facts,
            text=text,
            media_type=media_type,
            blocks=blocks,
            title=raw.title or _title(metadata.get("front_matter")),
            metadata=metadata,
            parser_name=parser.name,
            parser_version=parser.version,
        )
    except ValueError as error:
        raise ParseError("bad_blocks", f"{error}; blocks are counted in code points of the text") from error
    if not changes and text is decoded.text:
        document.digest = digest
    return document


def blocks_of(document: Document) -> tuple[Block, ...]:
    """The document's blocks, found now if nobody has parsed its text yet."""
    if document.blocks is not None:
        return document.blocks
    return PARSERS.get(document.media_type, _PLAIN_TEXT).read(document.text)[0]


def parsers_of(media_type: str) -> set[tuple[str, str]]:
    """Names and versions of the parsers that a document of some media type may be given to."""
    parser = PARSERS.get(media_type, _PLAIN_TEXT)
    return {(parser.name, parser.version), *([OCR_PARSER] if media_type == OCR else [])}


def _moved(blocks: tuple[Block, ...], text: str) -> tuple[Block, ...]:
    """Blocks of `text` as blocks of the normalised text, which lacks some of its characters."""
    removed = [found.start() for found in _REMOVED.finditer(text)]
    if not removed:
        return blocks

    def moved(position: int) -> int:
        return position - bisect_left(removed, position)

    moved_blocks = (replace(block, start=moved(block.start), end=moved(block.end)) for block in blocks)
    # Of a line that was cut off between CR and LF nothing may be left.
    return tuple(block for block in moved_blocks if block.start < block.end)


def _title(front_matter: object) -> str | None:
    title = front_matter.get("title") if isinstance(front_matter, dict) else None
    return title if isinstance(title, str) and title.strip() else None
