"""Titles of a reStructuredText: what they say without their markup, and how wide they are."""

from __future__ import annotations

import re
import unicodedata

from transforms.records import LONGEST_TITLE

ENOUGH = 4
"""Length of an adornment that makes a title even where it is shorter than that, as docutils has it."""
DEEPEST = 6
"""Deepest level of a heading; those below it are of that level too."""

# To look for markup may take time with the square of what is looked at.
_LONGEST_MARKED = 200
_ROLE = re.compile(r":[\w.:+-]{1,99}:(?=`)")
_REFERENCE = re.compile(r"`([^`<]*)[ \t]*<[^`>]*>`_{0,2}")
_INLINE = re.compile(r"(?<!\w)(``|\*\*|[`*|])(?=\S)(.+?)(?<=\S)\1_{0,2}(?!\w)")


def width(title: str) -> int:
    """Columns that a title takes."""
    if title.isascii():
        return len(title)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in title)
    return len(title) + wide - sum(map(bool, map(unicodedata.combining, title)))


def plain(title: str) -> str:
    """A title without markup."""
    title = title[:LONGEST_TITLE].strip()
    if len(title) > _LONGEST_MARKED:
        return title
    if "`" in title:
        title = _REFERENCE.sub(r"\1", _ROLE.sub("", title))
    if "`" in title or "*" in title or "|" in title:
        title = _INLINE.sub(r"\2", title)
    return title.replace("\\", "").strip()
