"""CommonMark with tables, read by cmark: the reference parser in C, as GitHub has it.

multimark brings cmark as a library, and wraps each node of a tree in an object; half a million of those cost more
than the parse, so the functions of cmark are called as they are. Its version is pinned, since it decides spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from multimark._binding import ffi, lib

from transforms.records import LONGEST_TITLE, BlockKind

_HEADING, _PARAGRAPH = lib.CMARK_NODE_HEADING, lib.CMARK_NODE_PARAGRAPH
_LIST, _ITEM, _CODE_BLOCK = lib.CMARK_NODE_LIST, lib.CMARK_NODE_ITEM, lib.CMARK_NODE_CODE_BLOCK
_IMAGE = lib.CMARK_NODE_IMAGE
_KINDS: dict[int, BlockKind] = {
    _HEADING: "heading",
    _PARAGRAPH: "paragraph",
    _ITEM: "list_item",
    lib.CMARK_NODE_BLOCK_QUOTE: "quote",
    _CODE_BLOCK: "code",
    lib.CMARK_NODE_HTML_BLOCK: "other",
    lib.CMARK_NODE_THEMATIC_BREAK: "other",
}
# An image can stand in a link.
_MAY_SHOW = frozenset({_IMAGE, lib.CMARK_NODE_LINK})
_LISTS = frozenset({_LIST, _ITEM})
_KNOWN = _LISTS.union(_KINDS)
_NO_PARTS = _KNOWN - _LISTS - {_CODE_BLOCK}
_BREAKS = frozenset({lib.CMARK_NODE_SOFTBREAK, lib.CMARK_NODE_LINEBREAK})
_WRITTEN = frozenset({lib.CMARK_NODE_TEXT, lib.CMARK_NODE_CODE})

# To look a function up in the library takes as long as to call it.
_type_of, _next = lib.cmark_node_get_type, lib.cmark_node_next
_first_child = lib.cmark_node_first_child
_start_line, _end_line = lib.cmark_node_get_start_line, lib.cmark_node_get_end_line

lib.cmark_gfm_core_extensions_ensure_registered()
_TABLES = lib.cmark_find_syntax_extension(b"table")

_Node = Any
# A block: its kind, its first line, the line after its last one, and what else there is to know: `level` and `title`
# (text without markup) of a heading, `images` (references) of a paragraph that is made of nothing else, `language`
# (the first word after the fence) of code, `header_lines` of a table. Half of the time goes into what is made for each
# block, so it is a bare tuple, without a mapping if that were empty.
MarkdownBlock = tuple[BlockKind, int, int, "Mapping[str, Any] | None"]


def top_level(text: str, line: int = 0) -> list[MarkdownBlock]:
    """The top-level blocks of a Markdown text, and items for lists, in order.

    What is between them is blank, or defines links. Code and tables in an item of a list are blocks of their own,
    between the parts of the item.

    Args:
        text: The text; its lines end in LF, CRLF or CR.
        line: Number of its first line.
    """
    # Halves of surrogate pairs, which no document that is read holds, are question marks in titles.
    data = text.encode("utf-8", "replace")
    parser = lib.cmark_parser_new(lib.CMARK_OPT_DEFAULT)
    lib.cmark_parser_attach_syntax_extension(parser, _TABLES)
    lib.cmark_parser_feed(parser, data, len(data))
    tree = lib.cmark_parser_finish(parser)
    lib.cmark_parser_free(parser)
    blocks: list[MarkdownBlock] = []
    has_images = "![" in text
    try:
        node = _first_child(tree)
        while node:
            kind = _type_of(node)
            if kind == _PARAGRAPH:
                first, last = _paragraph_lines(node)
                images = _images(node) if has_images else None
                facts = None if images is None else {"images": images}
                blocks.append(("paragraph", line + first, line + last, facts))
            elif kind == _LIST:
                item = _first_child(node)
                while item:
                    first, last = line + _start_line(item) - 1, line + _end_line(item)
                    if _holds_parts(item):
                        first = _add_parts(blocks, item, first, line)
                    if first < last:
                        blocks.append(("list_item", first, last, None))
                    item = _next(item)
            else:
                blocks.append(_block(node, kind, line))
            node = _next(node)
        return blocks
    finally:
        lib.cmark_node_free(tree)


def _block(node: _Node, node_type: int, line: int) -> MarkdownBlock:
    """A block that is no list and no paragraph."""
    # Tables, of an extension, have a type whose number is not known beforehand.
    kind = _KINDS.get(node_type, "table")
    first, last = _table_lines(node) if kind == "table" else (_start_line(node) - 1, _end_line(node))
    facts: Mapping[str, Any] | None = None
    if kind == "heading":
        facts = {"level": lib.cmark_node_get_heading_level(node), "title": _title(node)}
    elif kind == "code" and (words := _string(lib.cmark_node_get_fence_info(node)).split()):
        facts = {"language": words[0]}
    elif kind == "table":
        # The row of names and the line of dashes under it.
        facts = {"header_lines": "2"}
    return kind, line + first, line + last, facts


def _holds_parts(item: _Node) -> bool:
    """Whether an item of a list may hold code or tables."""
    child = _first_child(item)
    while child and _type_of(child) in _NO_PARTS:
        child = _next(child)
    return bool(child)


def _add_parts(blocks: list[MarkdownBlock], item: _Node, first: int, line: int) -> int:
    """Add the code and the tables in an item and in the lists in it, with what is before each; the line after them."""
    for node, kind in _inside(item, _LISTS.__contains__):
        if kind == _CODE_BLOCK or kind not in _KNOWN:
            part = _block(node, kind, line)
            if first < part[1]:
                blocks.append(("list_item", first, part[1], None))
            blocks.append(part)
            first = part[2]
    return first


def _paragraph_lines(paragraph: _Node) -> tuple[int, int]:
    """The lines of a paragraph; where no blank line divides it from a table, cmark has the two begin together."""
    first = _start_line(paragraph) - 1
    if first >= 0:
        return first, _end_line(paragraph)
    table = _next(paragraph)
    return _start_line(table) - 1, _table_lines(table)[0]


def _table_lines(table: _Node) -> tuple[int, int]:
    """The lines of a table, told by its first row: where cmark has it begin may be a paragraph."""
    last = _end_line(table)
    row = _next(_first_child(table))
    return (_start_line(row) - 1 if row else last) - 2, last


def _title(heading: _Node) -> str:
    only = _first_child(heading)
    if only and _type_of(only) in _WRITTEN and not _next(only):
        return _string(lib.cmark_node_get_literal(only))[:LONGEST_TITLE]
    title = ""
    for node, kind in _inside(heading):
        if kind in _WRITTEN:
            title += _string(lib.cmark_node_get_literal(node))
        elif kind in _BREAKS:
            title += " "
        if len(title) >= LONGEST_TITLE:
            break
    return title[:LONGEST_TITLE]


def _images(paragraph: _Node) -> tuple[str, ...] | None:
    first = _first_child(paragraph)
    if not first or _type_of(first) not in _MAY_SHOW:
        return None
    images: list[str] = []
    found = False
    for node, kind in _inside(paragraph, _IMAGE.__ne__):
        if kind == _IMAGE:
            found = True
            url = lib.cmark_node_get_url(node)
            if ffi.string(url, 5).lower() != b"data:":
                images.append(_string(url))
        elif kind == lib.CMARK_NODE_HTML_INLINE or (
            kind in _WRITTEN and _string(lib.cmark_node_get_literal(node)).strip()
        ):
            return None
    return tuple(images) if found else None


def _inside(
    node: _Node, is_entered: Callable[[int], bool] = lambda kind: True
) -> Iterator[tuple[_Node, int]]:
    """The nodes below one, in reading order, with their types; those below one that is not entered are left out."""
    child = _first_child(node)
    while child:
        kind = _type_of(child)
        yield child, kind
        below = _first_child(child) if is_entered(kind) else None
        if below:
            child = below
            continue
        while child != node and not _next(child):
            child = lib.cmark_node_parent(child)
        child = None if child == node else _next(child)


def _string(value: Any) -> str:
    return ffi.string(value).decode("utf-8", "replace") if value else ""
