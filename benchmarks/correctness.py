"""Whether chunks are what they should be: within the budget, all of the text and nothing else, where they say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.cutters import SIZE, Piece
from benchmarks.reference import reference

_REPLACEMENT = "\ufffd"
_WORD = re.compile(r"\w+")


@dataclass
class Faults:
    """What was found in the chunks of some documents.

    Attributes:
        skipped: Documents that the chunker leaves out, as it was told to.
        chunks: Chunks of the others.
        over: Chunks of more than `SIZE` tokens, recounted by tiktoken.
        marked: Such chunks that the chunker itself marks; they are not among those.
        lost: Characters but for white space that no chunk holds, aligned in favour of the chunker.
        introduced: U+FFFD in the chunks of documents that have none.
        wrong: Chunks whose span does not hold their text; None if the chunker tells no spans.
        raised: Documents that could not be cut, by the error.
    """

    skipped: int = 0
    chunks: int = 0
    over: int = 0
    marked: int = 0
    lost: int = 0
    introduced: int = 0
    wrong: int | None = None
    raised: Counter[str] = field(default_factory=Counter)

    def add(
        self, text: str, pieces: Sequence[Piece], overlap: int, rewritten: Callable[[str], str] | None
    ) -> None:
        """Look at the chunks of one more document.

        Args:
            text: Text of the document.
            pieces: Its chunks.
            overlap: Tokens that neighbours may share.
            rewritten: See `Cutter`.
        """
        self.chunks += len(pieces)
        for piece in pieces:
            if len(reference().encode_ordinary(piece.text)) > SIZE:
                self.marked += piece.is_marked
                self.over += not piece.is_marked
        if _REPLACEMENT not in text:
            self.introduced += sum(piece.text.count(_REPLACEMENT) for piece in pieces)
        if rewritten:
            self.lost += lost_words(rewritten(text), [piece.text for piece in pieces])
        else:
            held = [part for piece in pieces for part in _held(text, piece)]
            self.lost += lost(_without_spaces(text), held, overlap > 0)
        if any(piece.spans for piece in pieces):
            self.wrong = (self.wrong or 0) + sum(
                _slice(text, piece.spans) != piece.text
                for piece in pieces
                if piece.spans is not None and not piece.is_derived
            )


def _held(text: str, piece: Piece) -> Sequence[str]:
    """What a chunk holds of a text: where it is made of several spans, or from them, each of them."""
    if piece.spans and (piece.is_derived or len(piece.spans) > 1):
        return [text[start:end] for start, end in piece.spans]
    return [piece.text]


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


def lost_words(text: str, chunks: Sequence[str]) -> int:
    """Characters of the words of a text that its chunks have less often than the text.

    Args:
        text: The text.
        chunks: Texts of the chunks, in any order, with whatever else.
    """
    missing = Counter(_WORD.findall(text))
    for chunk in chunks:
        missing.subtract(_WORD.findall(chunk))
    return sum(len(word) * times for word, times in missing.items() if times > 0)


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _slice(text: str, spans: Sequence[tuple[int, int]]) -> str | None:
    return None if spans[0][0] < 0 else "".join(text[start:end] for start, end in spans)
