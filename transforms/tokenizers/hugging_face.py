"""Tokenizers of Hugging Face, from a `tokenizer.json`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transforms.errors import ConfigError


class HuggingFaceTokenizer:
    """A `tokenizer.json`, counting text as it is: no special tokens added, none recognised, nothing cut off.

    Args:
        uri: Path or URI of the file; the tokenizer's name.
        definition: Its bytes.

    Raises:
        ConfigError: If the package `tokenizers` is missing or the file is not a tokenizer.
    """

    def __init__(self, uri: str, definition: bytes) -> None:
        try:
            import tokenizers
        except ModuleNotFoundError:
            raise ConfigError("tokenizer", uri, "needs pip install 'chunkmill[hf]'") from None
        self.name = f"hf:{uri.rstrip('/').rpartition('/')[2]}"
        self.vocabulary_digest = hashlib.sha256(definition).hexdigest()
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_buffer(definition)
        except Exception as error:  # the binding raises bare Exception, whatever is wrong with the file
            raise ConfigError("tokenizer", uri, f"is not a tokenizer.json: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        batch = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in batch]

    def boundaries(self, text: str) -> NDArray[np.int64]:
        """End of each token of `text`, in code points."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        ends = np.array([end for _, end in offsets], np.int64)
        # A normaliser can make offsets go back; a hint that never does is enough.
        return np.maximum.accumulate(ends) if len(ends) else ends


@lru_cache
def hugging_face_tokenizer(uri: str) -> HuggingFaceTokenizer:
    """The tokenizer of a `tokenizer.json`, one per process.

    Raises:
        ConfigError: If the file cannot be read or is not a tokenizer.
    """
    from transforms.storage import filesystem

    store, path = filesystem(uri, setting="tokenizer")
    try:
        definition = store.cat_file(path)
    except OSError as error:
        raise ConfigError("tokenizer", uri, f"cannot be read: {error}") from error
    return HuggingFaceTokenizer(uri, definition)
