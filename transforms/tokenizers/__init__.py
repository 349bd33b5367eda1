"""Tokenizers: how the budget of a chunk is counted."""

from __future__ import annotations

from transforms.errors import ConfigError
from transforms.tokenizers.base import Tokenizer
from transforms.tokenizers.characters import CharacterTokenizer
from transforms.tokenizers.encodings import ENCODINGS, Engine, encoding_tokenizer, vocabulary_digest
from transforms.tokenizers.hugging_face import hugging_face_tokenizer

__all__ = ["CharacterTokenizer", "Engine", "Tokenizer", "get_tokenizer", "identity_of"]

_CHARACTER = CharacterTokenizer()


def get_tokenizer(name: str, engine: Engine = "auto") -> Tokenizer:
    """The tokenizer of a name, one per process.

    Args:
        name: `character`, an encoding of tiktoken (`cl100k_base`, `o200k_base`, ...), the path of a `.tiktoken`
            file, or the path or URI of a Hugging Face `tokenizer.json`.
        engine: What encodes for tiktoken's encodings; the ids are the same.

    Raises:
        ConfigError: If there is no such tokenizer, or its vocabulary is not at hand.
    """
    if name == _CHARACTER.name:
        return _CHARACTER
    if name in ENCODINGS or name.endswith(".tiktoken"):
        return encoding_tokenizer(name, engine)
    if name.endswith(".json"):
        return hugging_face_tokenizer(name)
    raise ConfigError(
        "tokenizer",
        name,
        f"unknown; known are {_CHARACTER.name}, {', '.join(ENCODINGS)}, the path of a .tiktoken file, "
        "and the path or URI of a tokenizer.json",
    )


def identity_of(tokenizer: str | Tokenizer) -> tuple[str, str]:
    """Name and vocabulary digest that stand for a tokenizer in a fingerprint, wherever its file lies.

    An encoding need not be loaded for it.

    Args:
        tokenizer: A tokenizer, or a name as for `get_tokenizer`.

    Raises:
        ConfigError: As `get_tokenizer`.
    """
    if isinstance(tokenizer, str):
        if tokenizer in ENCODINGS:
            return tokenizer, vocabulary_digest(tokenizer)
        tokenizer = get_tokenizer(tokenizer)
    return tokenizer.name, tokenizer.vocabulary_digest
