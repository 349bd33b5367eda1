"""AsciiDoc: section titles, delimited blocks and paragraphs, as blocks that hold every character of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from transforms.records import LONGEST_TITLE, Block, BlockKind

_LINE_END = r"[^\S\n]*\n"
_DELIMITER = r"(?:-{4,}|\.{4,}|/{4,}|\+{4,}|={4,}|_{4,}|\*{4,}|~{4,}|[|,:!]={3,}|`{3,}[^`\n]*)" + _LINE_END
# What is between two of a kind, by its first character.
_KINDS: Mapping[str, BlockKind] = {"-": "code", ".": "code", "`": "code", "_": "quote", "|": "table"}
_ITEM = (
    r"(?:[ \t]*(?:\*{1,5}|-|\.{1,5}|[0-9]+\.|[a-zA-Z]\.|<[0-9.]+>)[ \t]+\S"
    rf"|(?:(?=.*::)|(?=.*;;))\S.*?(?:::|;;)(?:[ \t]|{_LINE_END}))"
)
# What a block begins with, by name: blank lines; a line that says something of the block below, such as attributes, a
# caption or a comment; a delimiter; a title, for which Markdown's `#` is read too; text.
_FIRST = re.compile(
    r"(?P<blank>\s*\n)"
    rf"|(?P<about>(?:\[.*\]|\.[^\s.].*|//(?!/).*|:!?\w[\w-]*!?:(?:[ \t].*)?){_LINE_END})"
    rf"|(?P<delimiter>{_DELIMITER})"
    r"|(?P<title>(?:={1,6}|#{1,6})[ \t]+\S.*\n)"
    rf"|(?P<item>(?={_ITEM}))"
    r"|(?P<text>(?!\Z))"
)
# A title with its level told by the line below it, and by how much the two may differ in length. What tells the
# preprocessor what to read is none; and what is shorter is a list that goes on, or an open block.
_UNDERLINED = re.compile(
    rf"(?=.*\n[-=~^+])(?!\.|(?:ifn?def|ifeval|endif|include)::[^\s\[]*\[.*\]{_LINE_END})(?=.*?\w)(.*)\n"
    rf"(={{3,}}|-{{3,}}|~{{3,}}|\^{{3,}}|\+{{3,}}){_LINE_END}"
)
_LEVELS = "=-~^+"
_DIFFERENCE = 1
# Up to where text goes on: to blank lines, a delimiter, or the next item.
_ENDS: Mapping[str, re.Pattern[str]] = {
    "paragraph": re.compile(rf"\n(?:\s*\n|(?={_DELIMITER}))"),
    "list_item": re.compile(rf"\n(?:\s*\n|(?={_DELIMITER})|(?P<item>(?={_ITEM})))"),
}
_ATTRIBUTE = re.compile(r":(\w[\w-]*):(?:[ \t]+(.*))?")


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
    # A line break of two characters stays as long as it was, for lengths tell where a line is.
    lines = text.replace("\r\n", " \n").replace("\r", "\n")
    blocks = tuple(_read(f"{lines}\n\n"))
    header = _header(text, blocks)
    return blocks, {"front_matter": header} if header else {}


def _read(text: str) -> Iterator[Block]:
    """All blocks of a text that ends with a blank line, in order."""
    at = 0
    # Where that begins which is said of the block below.
    about: int | None = None
    while first := _FIRST.match(text, at):
        what, after = first.lastgroup, first.end()
        start = at if about is None else about
        if what == "about":
            about, at = start, after
            continue
        heading = _titled(text, first) if what == "title" else None
        if what in ("item", "text"):
            heading = _underlined(text, at)
        if heading or what == "blank":
            if about is not None:
                yield _block("other", text, about, at)
            if heading:
                yield heading
                after = text.index("\n", heading.end) + 1
        elif what == "delimiter":
            after = _closed(text, first)
            yield _block(_KINDS.get(text[at], "other"), text, start, after)
        else:
            kind: BlockKind = "list_item" if what == "item" else "paragraph"
            while found := _ENDS[kind].search(text, at):
                after = found.end()
                yield _block(kind, text, start, found.start())
                if not found.lastgroup:
                    break
                start = at = after
        about, at = None, after


def _titled(text: str, first: re.Match[str]) -> Block:
    """The heading of one line."""
    heading = _block("heading", text, *first.span())
    marks, title = first[0].split(maxsplit=1)
    heading.level, heading.title = len(marks), title.strip()[:LONGEST_TITLE]
    return heading


def _underlined(text: str, at: int) -> Block | None:
    """The heading that begins with a line, if the one below makes it one."""
    found = _UNDERLINED.match(text, at)
    if not found:
        return None
    title, underline = found[1].rstrip(), found[2]
    if abs(len(title) - len(underline)) > _DIFFERENCE:
        return None
    level = 1 + _LEVELS.index(underline[0])
    return Block("heading", at, found.end(2), level, title.strip()[:LONGEST_TITLE])


def _closed(text: str, first: re.Match[str]) -> int:
    """Where the block ends that a delimiter opens: after the same delimiter, or else with the text."""
    delimiter = first[0].rstrip()
    # Where a fence opens it may name a language.
    closing = "`" * (len(delimiter) - len(delimiter.lstrip("`"))) or delimiter
    found = re.compile(rf"\n{re.escape(closing)}{_LINE_END}").search(text, first.end() - 1)
    return found.end() if found else len(text)


def _block(kind: BlockKind, text: str, start: int, end: int) -> Block:
    """A block of some lines, without the white space after them."""
    return Block(kind, start, start + len(text[start:end].rstrip()))


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
