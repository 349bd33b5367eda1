"""CommonMark with tables, read by cmark: the reference parser in C, as GitHub has it.

multimark brings cmark as a library, and wraps each node of a tree in an object; half a million of those cost more
than the parse, so the functions of cmark are called as they are. Its version is pinned, since it decides spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from multimark._binding import ffi, lib

from transforms.records import BlockKind

_LONGEST_TITLE = 1000

_KINDS: dict[int, BlockKind] = {
    lib.CMARK_NODE_HEADING: "heading",
    lib.CMARK_NODE_PARAGRAPH: "paragraph",
    lib.CMARK_NODE_ITEM: "list_item",
    lib.CMARK_NODE_BLOCK_QUOTE: "quote",
    lib.CMARK_NODE_CODE_BLOCK: "code",
    lib.CMARK_NODE_HTML_BLOCK: "other",
    lib.CMARK_NODE_THEMATIC_BREAK: "other",
}
# An image can stand in a link.
_MAY_SHOW = frozenset({lib.CMARK_NODE_IMAGE, lib.CMARK_NODE_LINK})
_MOVED = frozenset({"paragraph", "table"})
_LISTS = frozenset({lib.CMARK_NODE_LIST, lib.CMARK_NODE_ITEM})
_KNOWN = _LISTS.union(_KINDS)
_NOTHING_APART = _KNOWN - _LISTS - {lib.CMARK_NODE_CODE_BLOCK}
_BREAKS = frozenset({lib.CMARK_NODE_SOFTBREAK, lib.CMARK_NODE_LINEBREAK})
_WRITTEN = frozenset({lib.CMARK_NODE_TEXT, lib.CMARK_NODE_CODE})

lib.cmark_gfm_core_extensions_ensure_registered()
_TABLES = lib.cmark_find_syntax_extension(b"table")

_Node = Any


class MarkdownBlock(NamedTuple):
    """A top-level block, or an item of a top-level list.

    Args:
        kind: Its kind.
        first: Its first line, from 0.
        last: The line after its last one.
        level: Level of a heading.
        title: Text of a heading, without markup.
        language: First word after the fence of code.
        images: References of the images that a paragraph is made of; None if it is made of anything else.
    """

    kind: BlockKind
    first: int
    last: int
    level: int | None = None
    title: str | None = None
    language: str = ""
    images: tuple[str, ...] | None = None


def top_level(text: str) -> Iterator[MarkdownBlock]:
    """The blocks of a Markdown text, in order; what is between them is blank, or defines links.

    Code and tables in an item of a list are blocks of their own, between the parts of the item.

    Args:
        text: The text; its lines end in LF, CRLF or CR.
    """
    # Halves of surrogate pairs, which no document that is read holds, are question marks in titles.
    data = text.encode("utf-8", "replace")
    parser = lib.cmark_parser_new(lib.CMARK_OPT_DEFAULT)
    lib.cmark_parser_attach_syntax_extension(parser, _TABLES)
    lib.cmark_parser_feed(parser, data, len(data))
    tree = lib.cmark_parser_finish(parser)
    lib.cmark_parser_free(parser)
    try:
        for node in _children(tree):
            if lib.cmark_node_get_type(node) == lib.CMARK_NODE_LIST:
                for item in _children(node):
                    yield from _item(item)
            else:
                yield _block(node)
    finally:
        lib.cmark_node_free(tree)


def _children(node: _Node) -> Iterator[_Node]:
    child = lib.cmark_node_first_child(node)
    while child:
        yield child
        child = lib.cmark_node_next(child)


def _block(node: _Node) -> MarkdownBlock:
    # Tables, of an extension, have a type whose number is not known beforehand.
    kind = _KINDS.get(lib.cmark_node_get_type(node), "table")
    lines = _lines(node) if kind in _MOVED else _told(node)
    if kind == "heading":
        return MarkdownBlock(kind, *lines, lib.cmark_node_get_heading_level(node), _title(node))
    if kind == "code":
        words = _string(lib.cmark_node_get_fence_info(node)).split()
        return MarkdownBlock(kind, *lines, language=words[0] if words else "")
    if kind == "paragraph":
        return MarkdownBlock(kind, *lines, images=_images(node))
    return MarkdownBlock(kind, *lines)


def _item(item: _Node) -> Iterator[MarkdownBlock]:
    """An item of a list, and the code and the tables in it, with the line that they begin in."""
    first, last = _told(item)
    for node in _apart(item):
        block = _block(node)
        if block.first > first:
            yield MarkdownBlock("list_item", first, block.first)
        yield block
        first = block.last
    if last > first:
        yield MarkdownBlock("list_item", first, last)


def _apart(item: _Node) -> Sequence[_Node]:
    """The code and the tables in an item and in the lists in it, in order."""
    kinds = []
    child = lib.cmark_node_first_child(item)
    while child:
        kinds.append(lib.cmark_node_get_type(child))
        child = lib.cmark_node_next(child)
    if _NOTHING_APART.issuperset(kinds):
        return ()
    return [
        node
        for node, kind in _inside(item, _LISTS.__contains__)
        if kind == lib.CMARK_NODE_CODE_BLOCK or kind not in _KNOWN
    ]


def _told(node: _Node) -> tuple[int, int]:
    return lib.cmark_node_get_start_line(node) - 1, lib.cmark_node_get_end_line(node)


def _lines(node: _Node) -> tuple[int, int]:
    """The lines of a paragraph or a table; where no blank line divides the two, cmark has them begin together."""
    first, last = _told(node)
    if lib.cmark_node_get_type(node) == lib.CMARK_NODE_PARAGRAPH:
        return (
            (first, last) if first >= 0 else (_told(table := lib.cmark_node_next(node))[0], _lines(table)[0])
        )
    row = lib.cmark_node_next(lib.cmark_node_first_child(node))
    return (_told(row)[0] if row else last) - 2, last


def _title(heading: _Node) -> str:
    title = ""
    for node, kind in _inside(heading):
        if kind in _WRITTEN:
            title += _string(lib.cmark_node_get_literal(node))
        elif kind in _BREAKS:
            title += " "
        if len(title) >= _LONGEST_TITLE:
            break
    return title[:_LONGEST_TITLE]


def _images(paragraph: _Node) -> tuple[str, ...] | None:
    first = lib.cmark_node_first_child(paragraph)
    if not first or lib.cmark_node_get_type(first) not in _MAY_SHOW:
        return None
    images: list[str] = []
    found = False
    for node, kind in _inside(paragraph, lib.CMARK_NODE_IMAGE.__ne__):
        if kind == lib.CMARK_NODE_IMAGE:
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
    child = lib.cmark_node_first_child(node)
    while child:
        kind = lib.cmark_node_get_type(child)
        yield child, kind
        below = lib.cmark_node_first_child(child) if is_entered(kind) else None
        if below:
            child = below
            continue
        while child != node and not lib.cmark_node_next(child):
            child = lib.cmark_node_parent(child)
        child = None if child == node else lib.cmark_node_next(child)


def _string(value: Any) -> str:
    return ffi.string(value).decode("utf-8", "replace") if value else ""
