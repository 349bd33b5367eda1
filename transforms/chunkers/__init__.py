"""Chunking strategies: from a document to the spans that become its chunks."""

from __future__ import annotations

from typing import Any

from transforms.chunkers.base import Chunker
from transforms.chunkers.code import CodeChunker
from transforms.chunkers.delimiter import DelimiterChunker
from transforms.chunkers.file_type import FileTypeChunker
from transforms.chunkers.heading import HeadingChunker
from transforms.chunkers.heading_aware import HeadingAwareChunker
from transforms.chunkers.json import JsonChunker
from transforms.chunkers.markdown import MarkdownChunker
from transforms.chunkers.pages import PagesChunker
from transforms.chunkers.paper import PaperChunker
from transforms.chunkers.recursive import RecursiveChunker
from transforms.chunkers.sentence import SentenceChunker
from transforms.chunkers.table_rows import TableRowsChunker
from transforms.chunkers.token import TokenChunker
from transforms.chunkers.whole import WholeChunker
from transforms.errors import ConfigError

__all__ = ["CHUNKERS", "Chunker", "get_chunker"]

CHUNKERS: dict[str, type[Chunker]] = {
    kind.name: kind
    for kind in (
        CodeChunker,
        DelimiterChunker,
        FileTypeChunker,
        HeadingAwareChunker,
        HeadingChunker,
        JsonChunker,
        MarkdownChunker,
        PagesChunker,
        PaperChunker,
        RecursiveChunker,
        SentenceChunker,
        TableRowsChunker,
        TokenChunker,
        WholeChunker,
    )
}


def get_chunker(name: str, **settings: Any) -> Chunker:
    """The chunker of a strategy.

    Args:
        name: Name of the strategy, one of `CHUNKERS`.
        **settings: Its settings; the others keep their defaults.

    Raises:
        ConfigError: If there is no such strategy, or it refuses a setting.
    """
    kind = CHUNKERS.get(name)
    if kind is None:
        raise ConfigError("chunker", name, f"unknown strategy; known are {', '.join(sorted(CHUNKERS))}")
    return kind(**settings)
