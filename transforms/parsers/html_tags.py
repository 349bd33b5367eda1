"""The tags of HTML with their place in the source: nothing is mended, and no text is refused.

`tags`, `tags_at_a_guess` and `shown` have compiled twins.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = (*HEADINGS, "table", "pre", "title")
"""Elements that become blocks, and the title."""

LINES_OF_THEIR_OWN = frozenset(
    "address article blockquote br caption dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre table td th tr ul".split()
)
"""Elements of which no text runs on into the text around them."""

# The rest of a tag after its name, in which a bracket in a quoted value does not end it; an empty group where it has
# no end, or more values than a pattern should hold, which takes memory for each.
_REST = r"""(?:>|[^>=]*(?:=(?:\s*"[^"]*"|\s*'[^']*'|(?!\s*["']))[^>=]*){0,99}>|())"""
_COMMENT = r"!(?=--)[\s\S]*?(?:-->|\Z)|[!?][^>]*>?"
_ANY_NAME = r"[a-zA-Z][^\s/>]*"
_NAME = 2
# Letters that are more than two if case is ignored.
_CASES = {"i": "iI\u0130\u0131", "k": "kK\u212a", "s": "sS\u017f"}
_TAG_STOP = re.compile(r"""=\s*(["'])|>""")
_SPACES = re.compile(r"[ \t\n\f\r]+")
_UNSEEN = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style", "template")
}


@dataclass(slots=True)
class Tag:
    """A tag of HTML.

    Args:
        start: First character, in code points.
        end: End of the half-open span.
        name: Its name in lower case; empty for a comment.
        is_end: Whether it ends an element.
    """

    start: int
    end: int
    name: str = ""
    is_end: bool = False


def tags(text: str, start: int, end: int, names: tuple[str, ...] = ()) -> Iterator[Tag]:
    """The tags of an HTML text in order, with what is never seen (comments, scripts) as part of them.

    Args:
        text: The text.
        start: First character, in code points.
        end: End of what is read.
        names: The names of the tags that are wanted, in ASCII; without them all are, and comments.
    """
    tag = _one_tag_of(names) if names else _ONE_TAG
    at = start
    while at < end:
        for found in tag.finditer(text, at, end):
            last = found.lastindex
            if last is None:
                if not names:
                    yield Tag(*found.span())
                continue
            at = found.end() if last == _NAME else _tag_end(text, found.end(), end)
            if found[_NAME]:
                name, is_end = found[_NAME].lower(), bool(found[1])
                if not is_end:
                    at = _after_unseen(text, at, end, name)
                yield Tag(found.start(), at, name, is_end)
            if at > found.end():
                break
        else:
            return


def _one_tag(names: str) -> re.Pattern[str]:
    """A pattern for any tag as a whole, that ends with the group `_NAME` if it has one of some names."""
    other = "" if names == _ANY_NAME else rf"|/?{_ANY_NAME}{_REST}"
    return re.compile(rf"<(?:(/?)({names})(?![^\s/>]){_REST}{other}|{_COMMENT})")


_ONE_TAG = _one_tag(_ANY_NAME)


@lru_cache
def _one_tag_of(names: tuple[str, ...]) -> re.Pattern[str]:
    return _one_tag(rf"(?ai:{'|'.join((*names, *_UNSEEN))})")


def tags_at_a_guess(text: str, start: int, end: int, names: tuple[str, ...]) -> Iterator[Tag]:
    """The tags of some names and comments, found by their names, which is much faster than to read all tags.

    What seems to stand in the value of an attribute is passed over: so is a tag after a `<` that begins none.

    Args:
        text: The text.
        start: First character, in code points.
        end: End of what is read.
        names: The names of the tags that are wanted, in ASCII.
    """
    search = _tag_named(names).search
    at = outside = start
    while found := search(text, at, end):
        begins, at = found.span()
        opened = text.rfind("<", outside, begins)
        if opened >= 0 and text.find(">", opened, begins) < 0:
            # It stands in the value of an attribute.
            continue
        last_name, first_name = found.groups()
        name = (last_name or first_name or "").lower()
        if not name:
            at = text.find("-->", begins + 2, end) + 3
            if at < found.end():
                at = end
        elif text[at - 1] != ">":
            at = _tag_end(text, at, end)
        if name in _UNSEEN and not last_name:
            at = _after_unseen(text, at, end, name)
        outside = at
        yield Tag(begins, at, name, bool(last_name))


@lru_cache
def _tag_named(names: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for the beginnings of comments and of tags of some names: of those that end an element, and others.

    Hardly any of a million tags has one of the names. A pattern that ignores case takes four times as long to see that
    as this one, which looks at their first letters before all else.
    """
    wanted = sorted([*names, *_UNSEEN])
    firsts = "".join(dict.fromkeys(_in_any_case(name[0]) for name in wanted)).replace("][", "")
    tree = "|".join(
        f"{_in_any_case(first)}(?:{'|'.join(_in_any_case(name[1:]) for name in group)})"
        for first, group in groupby(wanted, itemgetter(0))
    )
    name = rf"((?:{tree})(?=[\s/>]))>?"
    return re.compile(f"<(?:!--|/{name}|(?={firsts}){name})")


def _in_any_case(pattern: str) -> str:
    """A pattern of lower-case letters that matches them in any case, as one that ignores case does."""
    return re.sub("[a-z]", lambda found: f"[{_CASES.get(found[0], found[0] + found[0].upper())}]", pattern)


def _tag_end(text: str, at: int, end: int) -> int:
    """End of the tag whose name ends at `at`; a bracket in a quoted value does not end it."""
    while found := _TAG_STOP.search(text, at, end):
        if found[0] == ">":
            return found.end()
        at = text.find(found[1], found.end(), end) + 1
        if not at:
            break
    return end


def _after_unseen(text: str, at: int, end: int, name: str) -> int:
    """Where a tag that ends at `at` ends with what is in its element, if that is never seen."""
    if name not in _UNSEEN:
        return at
    closing = _UNSEEN[name].search(text, at, end)
    return closing.start() if closing else end


def shown(text: str, start: int, end: int, apart: frozenset[str] = frozenset()) -> str:
    """What a reader sees of a part of the source: its text without tags, and what its entities stand for.

    Args:
        text: The text.
        start: First character, in code points.
        end: End of what is read.
        apart: Names of the tags that become spaces.
    """
    pieces = []
    for tag in tags(text, start, end):
        pieces.append(unescaped(text[start : tag.start]))
        if tag.name in apart:
            pieces.append(" ")
        start = tag.end
    return "".join([*pieces, unescaped(text[start:end])])


def one_line(text: str) -> str:
    """Text of HTML as it stands in a line of its own."""
    if "  " in text or not text.isprintable():
        text = _SPACES.sub(" ", text)
    return text.strip()


def unescaped(text: str) -> str:
    """Text of HTML with the characters that its entities stand for."""
    try:
        return html.unescape(text)
    except ValueError:  # a number of more digits than Python reads
        return text
