"""The page on strategies shows what they do. `python tests/test_strategies_page.py` writes it anew."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines import preview
from pipelines.cli import _defaults
from pipelines.options import descriptions
from transforms.chunkers import CHUNKERS, Chunker, get_chunker
from transforms.parsers import ParseSettings, parse
from transforms.records import DocumentChunks, RawDocument, Source
from transforms.rules import Rules

PAGE = Path(__file__).parent.parent / "docs" / "strategies.md"

HANDBOOK = """\
# Harbour handbook

The ferry leaves every ten minutes. Mr. Ito, the captain, has 3.5 m of draught! Is v1.2 of the plan in force?

## Fares

| who | fare |
|---|---|
| adult | 12.50 |
| child | 6.00 |

Pay on board. Keep the ticket.
"""
PROGRAM = '''\
"""Fares of the ferry."""

import math
from functools import cache

LIMIT = 6


@cache
def fare(age: int) -> float:
    """What a passenger pays."""
    return 0.0 if age < LIMIT else 12.5


class Ferry:
    """A ferry and its passengers."""

    def __init__(self, seats: int) -> None:
        self.seats = seats

    def trips(self, passengers: int) -> int:
        return math.ceil(passengers / self.seats)
'''
RECORD = (
    '{"ferry": {"name": "Ito", "draught": 3.5, "stops": ["north quay", "island", "south quay"]}, '
    '"crew": [], "open": true}'
)
PAPER = """\
# On the draught of ferries

## Abstract

We measure the draught of forty ferries. It depends on their passengers, and on nothing else that we could find.

## Method

Each ferry was measured twice; once empty, once full. Children count as half.
"""
# For each strategy the name of a file, its text, and settings under which it shows what it does.
EXAMPLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "code": ("ferry.py", PROGRAM, {"chunk_size": 60}),
    "delimiter": (
        "fares.txt",
        "成人，十二元；儿童，六元。狗免费；猫也免费。请在船上付款！",
        {"chunk_size": 16},
    ),
    "file_type": ("ferry.py", PROGRAM, {"chunk_size": 60}),
    "heading": ("handbook.md", HANDBOOK, {"chunk_size": 48}),
    "heading_aware": ("handbook.md", HANDBOOK, {"chunk_size": 40, "chunk_overlap": 10}),
    "json": ("ferry.json", RECORD, {"chunk_size": 16}),
    "markdown": ("handbook.md", HANDBOOK, {"chunk_size": 64, "max_lines": 4}),
    "pages": ("slides.txt", "First slide.\n\x0cSecond slide,\nof two lines.\n", {"chunk_size": 32}),
    "paper": ("draught.md", PAPER, {"chunk_size": 32}),
    "recursive": ("handbook.md", HANDBOOK, {"chunk_size": 32}),
    "sentence": ("handbook.md", HANDBOOK, {"chunk_size": 24, "chunk_overlap": 12}),
    "table_rows": ("fares.csv", "who,fare,code\nadult,12.50,007\nchild,,008\n", {"chunk_size": 40}),
    "token": ("handbook.md", HANDBOOK, {"chunk_size": 24, "chunk_overlap": 4}),
    "whole": ("slides.txt", "First slide.\n\x0cSecond slide,\nof two lines.\n", {"chunk_size": 32}),
}

HEAD = """\
# Strategies

What each strategy does, its own settings, and what it makes of a small document. All of them have `chunk_size`,
`chunk_overlap`, `tokenizer`, `context`, `context_in_budget` and `engine`, and keep the same laws (see the README). This
page is written by `python tests/test_strategies_page.py`.

The examples are the output of `chunkmill preview`: the place of the chunk and, behind `^`, that of its parent; its
kind; its span in code points; its lines; its tokens; how its text begins.
"""


def page() -> str:
    """The page, as the code has it."""
    return "\n".join([HEAD, *(section(name) for name in sorted(CHUNKERS))])


def section(name: str) -> str:
    """What there is to say of a strategy."""
    kind = CHUNKERS[name]
    summary = inspect.cleandoc(kind.__doc__ or "").partition("\nArgs:")[0].partition("\nRaises:")[0].strip()
    defaults, texts = _defaults(kind()), descriptions(kind)
    own = [setting for setting in kind.model_fields if setting not in Chunker.model_fields]
    lines = [f"- `{each}` ({json.dumps(defaults[each], ensure_ascii=False)}): {texts[each]}" for each in own]
    settings = "\n".join(lines) + "\n\n" if lines else ""
    file, _, given = EXAMPLES[name]
    flags = " ".join(
        f"--{key} {value}" if key in Chunker.model_fields else f"--set {key}={value}"
        for key, value in given.items()
    )
    shown = "\n".join(line.rstrip() for line in example(name).splitlines())
    command = f"$ chunkmill preview {file} --chunker {name} {flags}"
    return f"## `{name}`\n\n{summary}\n\n{settings}```text\n{command}\n{shown}\n```\n"


def example(name: str) -> str:
    """What `chunkmill preview` shows of the example of a strategy."""
    file, text, settings = EXAMPLES[name]
    document = parse(RawDocument(file, text, source=Source(uri=file)), ParseSettings())
    rules = Rules(get_chunker(name, **settings))
    result = preview.cut(document, rules)
    assert isinstance(result, DocumentChunks)
    return preview.as_text(result, rules, 100)


def test_the_page_says_what_the_code_does() -> None:
    assert PAGE.read_text("utf-8") == page(), "out of date: run `python tests/test_strategies_page.py`"


@pytest.mark.parametrize("name", CHUNKERS)
def test_every_strategy_has_an_example_that_it_cuts(name: str) -> None:
    assert "0 over budget" in example(name)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
