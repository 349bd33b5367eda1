"""What is compared: a chunker with the one way to time it and the one way to see what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.reference import ENCODING
from transforms.chunkers import get_chunker
from transforms.records import Document, Span
from transforms.tokenizers import Engine
from transforms.tokenizers.encodings import encoding_tokenizer

SIZE = 512


class Piece(NamedTuple):
    """A chunk, whoever made it.

    Args:
        text: Its text.
        spans: Where the document holds it, in code points; None if the chunker does not tell.
        is_marked: Whether the chunker says itself that it is over the budget, as one that promises to keep
            something whole must.
        is_derived: Whether the chunker says itself that the text is made from the spans, not cut from them.
    """

    text: str
    spans: tuple[Span, ...] | None = None
    is_marked: bool = False
    is_derived: bool = False


@dataclass(frozen=True)
class Cutter:
    """A chunker.

    Args:
        cut: Cuts a document in the cheapest way that gives texts. This is what is timed.
        pieces: Cuts a document into chunks, as much told of each as the chunker can; None if it leaves this document
            out, as it was told to.
        rewritten: For a chunker that writes its texts anew, so that they cannot be found in the document, though
            their words can: how it would write all of it.
    """

    cut: Callable[[Document], object]
    pieces: Callable[[Document], list[Piece] | None]
    rewritten: Callable[[str], str] | None = None


def ours(strategy: str, overlap: int, engine: Engine) -> Cutter:
    """A strategy of ours, at its defaults but for size, overlap and tokenizer.

    Args:
        strategy: Its name.
        overlap: Tokens of overlap.
        engine: What encodes.
    """
    tokenizer = encoding_tokenizer(ENCODING, engine)
    chunker = get_chunker(strategy, chunk_size=SIZE, chunk_overlap=overlap, tokenizer=tokenizer)

    def pieces(document: Document) -> list[Piece] | None:
        result = chunker.chunk_document(document)
        if result.status == "skipped":
            return None
        return [Piece(one.text, one.spans, one.over_budget, one.is_derived) for one in result.chunks]

    return Cutter(chunker.chunk, pieces)
