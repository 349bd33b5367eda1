"""Patterns for paths: one meaning for inputs, rules and lists of what to skip.

`*` and `?` stand for characters within a name, `[abc]`, `[a-z]`, `[!a]` for one of them, and `**` as a name of its own
for any number of folders, none included. A pattern that ends in `/` stands for all that is below such a folder.
"""

from __future__ import annotations

import re

_PART = re.compile(r"\*+|\?|\[(!?)(\]?[^\]/]*)\]|[^*?\[]+|\[", re.DOTALL)
_ANY_FOLDERS = "**"


def path_regex(pattern: str) -> str:
    """A pattern as a regular expression for a whole path.

    Args:
        pattern: The pattern.

    Raises:
        ValueError: If a range of characters in it is the wrong way round.
    """
    *folders, last = _names(pattern)
    regex = "".join("(?:[^/]*/)*" if name == _ANY_FOLDERS else f"{_name_regex(name)}/" for name in folders)
    regex += ".*" if last in (_ANY_FOLDERS, "") else _name_regex(last)
    try:
        re.compile(regex)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no pattern: {error.msg}") from None
    return regex


def whole_path(pattern: str) -> re.Pattern[str]:
    """What finds whether a pattern stands for all of a path.

    Args:
        pattern: The pattern.

    Raises:
        ValueError: If it is none.
    """
    return re.compile(rf"{path_regex(pattern)}\Z", re.DOTALL)


def end_of_path(*patterns: str) -> re.Pattern[str]:
    """What searches for the end of a path, from the beginning of a name on, that any of some patterns stands for.

    Args:
        *patterns: The patterns.

    Raises:
        ValueError: If one is none.
    """
    regexes = "|".join(map(path_regex, patterns))
    return re.compile(rf"(?:\A|(?<=/))(?:{regexes})\Z" if patterns else r"(?!)", re.DOTALL)


def _names(pattern: str) -> list[str]:
    """The names that make a pattern, without `**` after another."""
    names: list[str] = []
    for name in pattern.split("/"):
        if name != _ANY_FOLDERS or names[-1:] != [_ANY_FOLDERS]:
            names.append(name)
    return names


def _name_regex(name: str) -> str:
    return "".join(map(_part_regex, _PART.finditer(name)))


def _part_regex(part: re.Match[str]) -> str:
    if part[0].startswith("*"):
        return "[^/]*"
    if part[0] == "?":
        return "[^/]"
    if not part[2]:
        return re.escape(part[0])
    characters = re.escape(part[2]).replace(r"\-", "-")
    return f"(?!/)[{'^' if part[1] else ''}{characters}]"
