"""Comma- and tab-separated values: a document that is one table."""

from __future__ import annotations

from collections.abc import Mapping

from transforms.records import Block


def parse_delimited(text: str) -> tuple[tuple[Block, ...], Mapping[str, object]]:
    """The table that the text is, without the white space around it; its rows are read where they are needed."""
    end = len(text.rstrip())
    start = len(text) - len(text.lstrip())
    return ((Block("table", start, end),) if start < end else ()), {}
