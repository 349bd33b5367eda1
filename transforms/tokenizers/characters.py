"""The tokenizer for budgets in characters."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


class CharacterTokenizer:
    """Counts code points: one token per character."""

    name = "character"
    vocabulary_digest = hashlib.sha256(b"one token per code point").hexdigest()

    def count(self, text: str) -> int:
        """Code points of `text`."""
        return len(text)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Code points of each text."""
        return [len(text) for text in texts]

    def boundaries(self, text: str) -> Sequence[int]:
        """1, 2, 3, ... up to the length of `text`."""
        return range(1, len(text) + 1)
