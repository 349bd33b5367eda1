"""Handlers and routers as a user may write them, named in tests by import path."""

from __future__ import annotations

import re

NO_FUNCTION = "text"


def lines(document):
    """Each line a text."""
    return document.text.splitlines()


def halves(document):
    """Two spans that share their middle."""
    size = len(document.text)
    return [(0, size // 2 + 3), (size // 2 - 3, size)]


def after_head(document):
    """All but the first line, as a span in a list."""
    return [[document.text.index("\n") + 1, len(document.text)]]


def whole(document):
    return document.text


def nothing(document):
    return ()


def upper(document):
    yield document.text[:3]
    yield document.text.upper()


def backwards(document):
    return [(4, 8), (0, 4)]


def outside(document):
    return [(0, len(document.text) + 1)]


def numbers(document):
    return [1, 2]


def none(document):
    return None


def fails(document):
    raise KeyError("no such thing")


def fails_late(document):
    yield document.text[:3]
    raise RuntimeError("out of paper")


def endless(document):
    while True:
        yield document.text[:1]


def words(document):
    return re.findall(r"\S+", document.text)


def route(document):
    """By a word in the text: what it says, else nothing."""
    found = re.match(r"#!route (\S+)", document.text)
    return found[1] if found else None
