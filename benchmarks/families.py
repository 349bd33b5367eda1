"""Who is compared with whom, on which documents: each strategy on those that it is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from benchmarks import corpus, peers
from benchmarks.corpus import Text
from benchmarks.peers import Peers
from transforms.chunkers import CHUNKERS
from transforms.records import Document
from transforms.tokenizers import Engine

FAST: Engine = "fastokens"
_OF_ONE_KIND = ("code", "json", "markdown", "paper", "table_rows")
# What may hold a table; whether it does, the parse tells.
_TABLE = re.compile(r"<table|^ *\|? *:?-{2,}:? *\|", re.IGNORECASE | re.MULTILINE)
_SHEETS = ("text/csv", "text/tab-separated-values")


@dataclass(frozen=True)
class Family:
    """Strategies and peers that are measured on the same documents.

    Args:
        name: Stem of its table.
        title: What the table shows.
        about: The documents, in words.
        takes: Whether a text is one of the documents.
        strategies: Strategies of ours, registered or not.
        peers: What others have for such documents.
        share: Its part of the budget.
        has: Whether a document is one of the documents once it is parsed.
        form: Makes of the texts what is measured.
        overlaps: Tokens of overlap to try.
        engines: What encodes for ours.
    """

    name: str
    title: str
    about: str
    takes: Callable[[Text], bool]
    strategies: Sequence[str]
    peers: Peers
    share: float
    has: Callable[[Document], bool] = lambda _: True
    form: Callable[[Iterable[Text]], Iterable[Text]] = list
    overlaps: Sequence[int] = (0,)
    engines: Sequence[Engine] = (FAST,)


def _of(*media_types: str) -> Callable[[Text], bool]:
    return lambda text: text.media_type in media_types


def _may_hold_table(text: Text) -> bool:
    if text.media_type in _SHEETS:
        return True
    return text.media_type in ("text/html", "text/markdown") and bool(_TABLE.search(text.text))


def _holds_table(document: Document) -> bool:
    return any(block.kind == "table" for block in document.blocks or ())


PROSE = Family(
    "prose",
    "Chunkers, any documents",
    "documents of all media types",
    lambda _: True,
    [name for name in CHUNKERS if name not in _OF_ONE_KIND],
    peers.FOR_TEXT,
    1.0,
    overlaps=(0, 64),
    engines=(FAST, "tiktoken"),
)
FAMILIES = (
    PROSE,
    replace(
        PROSE,
        name="small",
        title="Chunkers, any documents, small",
        about=f"documents of all media types, cut to {corpus.SMALL // 1024} KB each",
        share=0.4,
        form=corpus.cut_small,
        overlaps=(0,),
        engines=(FAST,),
    ),
    Family(
        "code",
        "Chunkers, programs",
        "programs in Python",
        _of("text/x-python"),
        ("code", "file_type", "recursive"),
        peers.FOR_CODE,
        0.5,
    ),
    Family(
        "json",
        "Chunkers, JSON",
        "JSON",
        _of("application/json", "application/jsonl"),
        ("json", "file_type", "recursive"),
        peers.FOR_JSON,
        0.4,
    ),
    Family(
        "markdown",
        "Chunkers, Markdown",
        "Markdown",
        _of("text/markdown"),
        ("markdown", "paper", "heading", "heading_aware", "file_type", "recursive"),
        peers.FOR_MARKDOWN,
        0.5,
    ),
    Family(
        "tables",
        "Chunkers, tables",
        "HTML, Markdown and delimited text with tables",
        _may_hold_table,
        ("table_rows", "recursive"),
        {},
        0.4,
        has=_holds_table,
    ),
)
