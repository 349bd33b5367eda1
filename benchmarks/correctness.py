"""Whether chunks are what they should be: within the budget, all of the text and nothing else, where they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.cutters import SIZE, Piece
from benchmarks.reference import reference

_REPLACEMENT = "\ufffd"


@dataclass
class Faults:
    """What was found in the chunks of some documents.

    Attributes:
        documents: Documents that were cut.
        chunks: Their chunks.
        over: Chunks of more than `SIZE` tokens, recounted by tiktoken.
        characters: Characters of the documents but for white space.
        lost: Those that no chunk holds, aligned in favour of the chunker.
        introduced: U+FFFD in the chunks of documents that have none.
        wrong: Chunks whose span does not hold their text; None if the chunker tells no spans.
        raised: Documents that could not be cut, by the error.
    """

    documents: int = 0
    chunks: int = 0
    over: int = 0
    characters: int = 0
    lost: int = 0
    introduced: int = 0
    wrong: int | None = None
    raised: Counter[str] = field(default_factory=Counter)

    def add(self, text: str, pieces: Sequence[Piece], overlap: int) -> None:
        """Look at the chunks of one more document.

        Args:
            text: Text of the document.
            pieces: Its chunks.
            overlap: Tokens that neighbours may share.
        """
        chunks = [chunk for chunk, _ in pieces]
        bare = _without_spaces(text)
        self.documents += 1
        self.chunks += len(chunks)
        self.over += sum(len(reference().encode_ordinary(chunk)) > SIZE for chunk in chunks)
        self.characters += len(bare)
        self.lost += lost(bare, chunks, overlap > 0)
        if _REPLACEMENT not in text:
            self.introduced += sum(chunk.count(_REPLACEMENT) for chunk in chunks)
        if any(spans for _, spans in pieces):
            wrong = sum(spans is not None and _slice(text, spans) != chunk for chunk, spans in pieces)
            self.wrong = (self.wrong or 0) + wrong


def lost(bare: str, chunks: Sequence[str], overlapping: bool) -> int:
    """Characters of a text that its chunks do not hold.

    Each chunk is looked for from where the one before ended, or, with overlap, as late as it can be without a gap;
    else further on, which leaves a gap. What is found nowhere was altered, and holds nothing.

    Args:
        bare: The text without its white space, which chunkers may trim and join as they like.
        chunks: Texts of the chunks, in order.
        overlapping: Whether chunks may begin before the one before them ends.
    """
    covered = begun = missing = 0
    for chunk in chunks:
        # A character that was cut in two became U+FFFD: it is lost, and what stands beside it is not.
        parts = [chunk] if _REPLACEMENT in bare else chunk.split(_REPLACEMENT)
        for part in filter(None, map(_without_spaces, parts)):
            start = bare.rfind(part, begun if overlapping else covered, covered + len(part))
            if start < 0:
                start = bare.find(part, covered)
            if start < 0:
                continue
            missing += max(0, start - covered)
            begun, covered = start, max(covered, start + len(part))
    return missing + len(bare) - covered


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _slice(text: str, spans: Sequence[tuple[int, int]]) -> str | None:
    return None if spans[0][0] < 0 else "".join(text[start:end] for start, end in spans)
