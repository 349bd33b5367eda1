"""AsciiDoc: section titles, delimited blocks and paragraphs, as blocks that hold every character of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from transforms.records import Block, BlockKind

# Markdown's `#` is read too.
_TITLE = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
# A title with its level told by the line below it, and by how much the two may differ in length.
_TITLE_ABOVE = re.compile(r"(?!\.).*?\w.*")
# Less is a list that goes on, or an open block.
_UNDERLINE = re.compile(r"={3,}|-{3,}|~{3,}|\^{3,}|\+{3,}")
_LEVELS = "=-~^+"
_DIFFERENCE = 1
_DELIMITER = re.compile(r"-{4,}|\.{4,}|/{4,}|\+{4,}|={4,}|_{4,}|\*{4,}|~{4,}|--|[|,:!]={3,}|`{3,}[^`]*")
_KINDS: Mapping[str, BlockKind] = {"-": "code", ".": "code", "`": "code", "_": "quote", "|": "table"}
_OPEN_BLOCK = "--"
# A line that tells the preprocessor what to read.
_PREPROCESSED = re.compile(r"(?:ifn?def|ifeval|endif|include)::\S*\[.*\]")
# Lines that say something of the block below: attributes, a caption, a comment.
_ABOUT = re.compile(r"\[.*\]|\.[^\s.].*|//(?!/).*|:!?\w[\w-]*!?:(?:[ \t].*)?")
_ATTRIBUTE = re.compile(r":(\w[\w-]*):(?:[ \t]+(.*))?")
_ITEM = re.compile(
    r"[ \t]*(?:\*{1,5}|-|\.{1,5}|[0-9]+\.|[a-zA-Z]\.|<[0-9.]+>)[ \t]+\S|\S.*?(?:::|;;)(?:[ \t]|$)"
)
_LONGEST_TITLE = 1000


def parse_asciidoc(text: str) -> tuple[tuple[Block, ...], Mapping[str, object]]:
    """Blocks of an AsciiDoc text, and the title and attributes of its header as `front_matter`.

    A heading is a line after a blank one, outside every delimited block, that begins with one to six `=`, of that
    level; or one with a line below it of nothing but `=`, `-`, `~`, `^` or `+`, for the levels one to five, as long
    as itself give or take one character and no shorter than three. A delimited block (listing, literal, comment,
    example, quote, sidebar, table) is one block from its attributes to the same delimiter again; one that is never
    closed holds all that follows. What blank lines part besides is a paragraph, or a list item if it begins as one.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
    """
    blocks = tuple(_Reader(text).read())
    header = _header(text, blocks)
    return blocks, {"front_matter": header} if header else {}


class _Reader:
    """The blocks of an AsciiDoc text, read line by line.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        # A line break of two characters stays as long as it was, for lengths tell where a line is.
        self._lines = text.replace("\r\n", " \n").replace("\r", "\n").split("\n")
        # The block that has begun: where, what it is so far, the end of its last line, and what will close it.
        self._start: int | None = None
        self._kind: BlockKind = "other"
        self._end = 0
        self._closing = ""
        # The line below the title that was read last, where it belongs to the title.
        self._underline: int | None = None

    def read(self) -> Iterator[Block]:
        """All blocks, in order."""
        after = 0
        for whole, below in zip_longest(self._lines, self._lines[1:], fillvalue=""):
            start, line = after, whole.rstrip()
            after += len(whole) + 1
            if start == self._underline:
                continue
            if self._closing:
                if line:
                    self._end = start + len(line)
                    if line == self._closing:
                        yield from self._close()
            elif line and self._is_at_start and _is_title_above(line, underline := below.rstrip()):
                yield from self._close()
                yield _heading(start, after + len(underline), 1 + _LEVELS.index(underline[0]), line)
                self._underline = after
            elif line:
                yield from self._take(line, start, start + len(line))
            elif self._start is not None:
                yield from self._close()
        yield from self._close()

    @property
    def _is_at_start(self) -> bool:
        """Whether a block may begin: none has, or nothing but what is said about it."""
        return self._start is None or self._kind == "other"

    def _take(self, line: str, start: int, end: int) -> Iterator[Block]:
        """A line that is not blank and in no delimited block."""
        is_start = self._is_at_start
        title = _TITLE.fullmatch(line) if is_start else None
        if title:
            yield from self._close()
            yield _heading(start, end, len(title[1]), title[2])
        elif _DELIMITER.fullmatch(line) and line != _OPEN_BLOCK:
            if not is_start:
                yield from self._close()
            self._begin(start, _KINDS.get(line[0], "other"), end)
            # Where a fence opens it may name a language.
            self._closing = "`" * (len(line) - len(line.lstrip("`"))) or line
        elif _ABOUT.fullmatch(line) and is_start:
            self._begin(start, "other", end)
        elif is_start:
            self._begin(start, "list_item" if _ITEM.match(line) else "paragraph", end)
        else:
            if self._kind == "list_item" and _ITEM.match(line):
                yield from self._close()
                self._begin(start, "list_item", end)
            self._end = end

    def _begin(self, start: int, kind: BlockKind, end: int) -> None:
        """Begin a block, or say what it is whose attributes have been read."""
        self._start = start if self._start is None else self._start
        self._kind, self._end = kind, end

    def _close(self) -> Iterator[Block]:
        if self._start is not None:
            yield Block(self._kind, self._start, self._end)
        self._start, self._kind, self._closing = None, "other", ""


def _is_title_above(line: str, below: str) -> bool:
    """Whether a line is a title because of the one below it."""
    return (
        abs(len(line) - len(below)) <= _DIFFERENCE
        and bool(_UNDERLINE.fullmatch(below) and _TITLE_ABOVE.fullmatch(line))
        and not any(pattern.fullmatch(line) for pattern in (_TITLE, _ABOUT, _DELIMITER, _PREPROCESSED))
    )


def _heading(start: int, end: int, level: int, title: str) -> Block:
    return Block("heading", start, end, level, title.strip()[:_LONGEST_TITLE])


def _header(text: str, blocks: tuple[Block, ...]) -> dict[str, object]:
    """Title and attributes of the document."""
    for place, block in enumerate(blocks):
        if block.kind == "heading" and block.level == 1:
            header: dict[str, object] = {"title": block.title}
            for line in text[block.end : blocks[place + 1].end].splitlines() if blocks[place + 1 :] else ():
                if found := _ATTRIBUTE.fullmatch(line.strip()):
                    header[found[1]] = found[2] or ""
            return header
        if block.kind != "other":
            break
    return {}
