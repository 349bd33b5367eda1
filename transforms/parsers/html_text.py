"""HTML: its headings, tables and preformatted text as blocks of the source, tags and all."""

from __future__ import annotations

from collections.abc import Mapping

from transforms.parsers.compiled import native
from transforms.parsers.html_tags import (
    BLOCKS,
    HEADINGS,
    LINES_OF_THEIR_OWN,
    Tag,
    one_line,
    shown,
    tags_at_a_guess,
)
from transforms.records import LONGEST_TITLE, Block


def parse_html(text: str) -> tuple[tuple[Block, ...], Mapping[str, object]]:
    """Headings (`h1` to `h6`), tables and code (`pre`) of an HTML text; its title as `front_matter`.

    The text stays as it is, and what is in none of these elements is in no block. A heading that is never closed is
    none; a table or `pre` that is never closed holds all that follows. Of a title more than 1,000 characters are left
    out.

    Args:
        text: The text.
    """
    blocks, title = native.html_blocks(text) if native else html_blocks(text)
    return tuple(blocks), {"front_matter": {"title": title}} if title else {}


def html_blocks(text: str) -> tuple[list[Block], str]:
    """The blocks of an HTML text, and its title, empty if it has none; this has a compiled twin.

    Args:
        text: The text.
    """
    reader = _Reader(text)
    for tag in tags_at_a_guess(text, 0, len(text), BLOCKS):
        reader.take(tag)
    reader.close(len(text))
    return reader.blocks, reader.title


class _Reader:
    """The blocks of an HTML text, read tag by tag.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.blocks: list[Block] = []
        self.title = ""
        # The element that is open and will be a block: where it starts, where its first tag ends, and how often its
        # name is open in it.
        self._element: str | None = None
        self._start = self._inside = self._depth = 0

    def take(self, tag: Tag) -> None:
        """The next tag."""
        name, is_heading = tag.name, tag.name in HEADINGS
        if self._element in ("table", "pre"):
            if name == self._element:
                self._depth += -1 if tag.is_end else 1
                if not self._depth:
                    self.close(tag.end)
        elif tag.is_end:
            if self._element and (name == self._element or (is_heading and self._element != "title")):
                self._close_titled(tag)
        elif is_heading or name in ("table", "pre") or (name == "title" and not self.title):
            self._element, self._start, self._inside, self._depth = name, tag.start, tag.end, 1

    def close(self, end: int) -> None:
        """End a table or preformatted text, if one is open."""
        if self._element in ("table", "pre"):
            end = self._start + len(self._text[self._start : end].rstrip())
            self.blocks.append(Block("table" if self._element == "table" else "code", self._start, end))
        self._element = None

    def _close_titled(self, last: Tag) -> None:
        title = one_line(shown(self._text, self._inside, last.start, LINES_OF_THEIR_OWN))[:LONGEST_TITLE]
        if self._element == "title":
            self.title = title
        elif title:
            level = int((self._element or "h1")[1])
            self.blocks.append(Block("heading", self._start, last.end, level=level, title=title))
        self._element = None
