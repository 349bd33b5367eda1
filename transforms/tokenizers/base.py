"""What every tokenizer offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@runtime_checkable
class Tokenizer(Protocol):
    """Counts the tokens of a text; any object with these members can be a chunker's `tokenizer`.

    Text that looks like a special token is ordinary text.
    """

    @property
    def name(self) -> str:
        """Name, part of a chunker's fingerprint."""

    @property
    def vocabulary_digest(self) -> str:
        """SHA-256 in hex of whatever decides the counts, part of a chunker's fingerprint."""

    def count(self, text: str) -> int:
        """Tokens of `text`."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""

    def boundaries(self, text: str) -> Sequence[int] | NDArray[np.integer[Any]]:
        """End of each token of `text`, in code points, ascending.

        A token that ends inside a character counts to the end of that character.
        """
