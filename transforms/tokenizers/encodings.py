"""tiktoken's encodings, without its downloads, and a faster encoder that is held to tiktoken's ids."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from array import array
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from transforms.errors import ConfigError
from transforms.tokenizers.self_check import SAMPLE

if TYPE_CHECKING:
    import tiktoken
    from numpy.typing import NDArray

Engine = Literal["auto", "tiktoken", "fastokens"]
_Encode = Callable[[str], bytes]
_BYTES_OF_AN_ID = 4

_CHECK_EVERY = 1000
# Counts of words and closing punctuation are asked for again and again; those of longer texts hardly ever.
REMEMBERED_LENGTH, _REMEMBERED_COUNTS = 32, 100_000


@dataclass(frozen=True, slots=True)
class _Encoding:
    """What tiktoken pins for an encoding: pattern, address of the ranks (the key of its cache), their digest."""

    pattern: str
    url: str
    sha256: str
    embedded: str | None = None


_STORE = "https://openaipublic.blob.core.windows.net/encodings/"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_O200K = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_P50K_SHA256 = "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
ENCODINGS = {
    "cl100k_base": _Encoding(
        _CL100K,
        _STORE + "cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "cl100k_base",
    ),
    "o200k_base": _Encoding(_O200K, _STORE + "o200k_base.tiktoken", _O200K_SHA256, "o200k_base"),
    "o200k_harmony": _Encoding(_O200K, _STORE + "o200k_base.tiktoken", _O200K_SHA256, "o200k_base"),
    "p50k_base": _Encoding(_R50K, _STORE + "p50k_base.tiktoken", _P50K_SHA256),
    "p50k_edit": _Encoding(_R50K, _STORE + "p50k_base.tiktoken", _P50K_SHA256),
    "r50k_base": _Encoding(
        _R50K,
        _STORE + "r50k_base.tiktoken",
        "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    ),
}


class EncodingTokenizer:
    """A tiktoken encoding: exact ids, by a faster encoder where one is installed and proves itself.

    Args:
        name: Name of the encoding.
        vocabulary: Its ranks, as the lines of a `.tiktoken` file.
        engine: `tiktoken`; `fastokens`, refused where it is missing or differs; or `auto`, which takes the
            faster one where it covers the encoding, is installed and agrees with tiktoken.

    Attributes:
        engine: The engine in use.
        fallback: Why `auto` does not use the faster one; None if it does.
        begun: Characters that begin in each token: its bytes that continue none.
        known_counts: Tokens of short texts that were counted before.
    """

    def __init__(self, name: str, vocabulary: bytes, engine: Engine = "auto") -> None:
        self.name = name
        self.vocabulary_digest = hashlib.sha256(vocabulary).hexdigest()
        ranks = _parse(vocabulary)
        self._reference = _reference(name, ENCODINGS[name].pattern, ranks)
        self.begun = np.zeros(max(ranks.values()) + 1, np.int32)
        self.begun[list(ranks.values())] = _characters_begun(ranks)
        self.engine: str = "tiktoken"
        self.fallback: str | None = None
        self._encode: _Encode = self._encode_reference
        self._encoded = 0
        self.known_counts: dict[str, int] = {}
        if engine != "tiktoken":
            self._use_fastokens(vocabulary, required=engine == "fastokens")

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        if len(text) > REMEMBERED_LENGTH:
            return len(self._encode(text)) // _BYTES_OF_AN_ID
        count = self.known_counts.get(text)
        if count is None:
            if len(self.known_counts) >= _REMEMBERED_COUNTS:
                self.known_counts.clear()
            count = self.known_counts[text] = len(self._encode(text)) // _BYTES_OF_AN_ID
        return count

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return [self.count(text) for text in texts]

    def encode(self, text: str) -> NDArray[np.uint32]:
        """Token ids of `text`, those of `tiktoken.Encoding.encode_ordinary`."""
        return np.frombuffer(self._encode(text), np.uint32)

    def encode_packed(self, text: str) -> bytes:
        """Token ids of `text` as unsigned numbers of 32 bits in the order of this machine, one after the other."""
        return self._encode(text)

    def boundaries(self, text: str) -> NDArray[np.int32]:
        """End of each token of `text`, in code points."""
        return self.ends(self.encode(text))

    def ends(self, ids: NDArray[np.uint32]) -> NDArray[np.int32]:
        """End of each token of a text, in code points, given the ids of all."""
        # Of all ways to write a running sum numpy is fastest at this one, by a factor of three.
        return np.add.accumulate(self.begun.take(ids))

    def _encode_reference(self, text: str) -> bytes:
        # From a list numpy takes three times as long.
        return array("I", self._reference.encode_ordinary(text)).tobytes()

    def _encode_fast(self, text: str) -> bytes:
        ids: bytes = self._fast.encode_batch_flat([text])[0]
        self._encoded += 1
        if self._encoded % _CHECK_EVERY == 0:
            reference = self._encode_reference(text)
            if ids != reference:
                self._fall_back(f"differs from tiktoken on a document of {len(text)} characters")
                return reference
        return ids

    def _use_fastokens(self, vocabulary: bytes, *, required: bool) -> None:
        try:
            self._fast = _fastokens(self.name, vocabulary)
        except _NoFastEngineError as error:
            self._fall_back(str(error))
        else:
            self.engine, self._encode = "fastokens", self._encode_fast
            if any(self._encode(text) != self._encode_reference(text) for text in SAMPLE):
                self._fall_back("differs from tiktoken on the self-check")
        if required and self.fallback:
            raise ConfigError("engine", "fastokens", f"{self.fallback}; use engine 'auto' or 'tiktoken'")

    def _fall_back(self, reason: str) -> None:
        self.engine, self.fallback, self._encode = "tiktoken", f"fastokens {reason}", self._encode_reference


class _NoFastEngineError(Exception):
    """The faster engine cannot serve this encoding."""


def _fastokens(name: str, vocabulary: bytes) -> Any:
    if ENCODINGS[name].embedded != name:
        raise _NoFastEngineError(f"does not cover {name}")
    # One process per core is the job's own parallelism.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    try:
        import fastokens
    except ImportError:
        raise _NoFastEngineError("is not installed (pip install 'chunkmill[fast]')") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.tiktoken"
        path.write_bytes(vocabulary)
        # Given tiktoken's pattern instead of the encoding's name it is four times slower.
        return fastokens.Tokenizer.from_tiktoken(str(path), encoding=name, special_tokens={})


def _reference(name: str, pattern: str, ranks: dict[bytes, int]) -> tiktoken.Encoding:
    import tiktoken

    # No special tokens: text that looks like one is ordinary text.
    return tiktoken.Encoding(f"chunkmill_{name}", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def _parse(vocabulary: bytes) -> dict[bytes, int]:
    words = vocabulary.split()
    return dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))


def _characters_begun(tokens: Collection[bytes]) -> NDArray[np.int32]:
    """Characters that begin in each token, none of which is empty."""
    begins = np.frombuffer(b"".join(tokens), np.uint8) & 0xC0 != 0x80
    starts = np.cumsum([0, *map(len, tokens)])[:-1]
    return np.add.reduceat(begins, starts, dtype=np.int32)


@lru_cache
def encoding_tokenizer(name: str, engine: Engine = "auto") -> EncodingTokenizer:
    """The tokenizer of a tiktoken encoding, one per process.

    Args:
        name: One of `ENCODINGS`, or the path of a `.tiktoken` file of one of them.
        engine: See `EncodingTokenizer`.

    Raises:
        ConfigError: If the vocabulary is not at hand (nothing is ever downloaded) or is not the pinned one.
    """
    if name.endswith(".tiktoken"):
        try:
            vocabulary = Path(name).read_bytes()
        except OSError as error:
            raise ConfigError("tokenizer", name, f"cannot be read: {error}") from error
        return EncodingTokenizer(_encoding_of(name, vocabulary), vocabulary, engine)
    return EncodingTokenizer(name, _vocabulary(name), engine)


def vocabulary_digest(name: str) -> str:
    """Digest that tiktoken pins for the vocabulary of `name`, which need not be loaded for it."""
    return ENCODINGS[name].sha256


def _encoding_of(path: str, vocabulary: bytes) -> str:
    digest = hashlib.sha256(vocabulary).hexdigest()
    for name, encoding in ENCODINGS.items():
        if encoding.sha256 == digest:
            return name
    raise ConfigError("tokenizer", path, f"no encoding of tiktoken has a vocabulary with SHA-256 {digest}")


def _vocabulary(name: str) -> bytes:
    encoding = ENCODINGS[name]
    if encoding.embedded:
        vocabulary = _unpack(encoding.embedded)
    else:
        cached = _cache_folder() / hashlib.sha1(encoding.url.encode()).hexdigest()
        if not cached.is_file():
            raise ConfigError(
                "tokenizer",
                name,
                f"its vocabulary is not embedded and nothing is downloaded: name a {Path(encoding.url).name} file "
                f"by its path instead, or fill tiktoken's cache (TIKTOKEN_CACHE_DIR, here {cached.parent}) on a "
                f"machine with a network",
            )
        vocabulary = cached.read_bytes()
    digest = hashlib.sha256(vocabulary).hexdigest()
    if digest != encoding.sha256:
        raise ConfigError("tokenizer", name, f"vocabulary has SHA-256 {digest}, not {encoding.sha256}")
    return vocabulary


def _cache_folder() -> Path:
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if os.environ.get(variable):
            return Path(os.environ[variable])
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def _unpack(name: str) -> bytes:
    """Lines of the `.tiktoken` file from an embedded vocabulary: each token as a length byte and its bytes."""
    packed = zlib.decompress((files("transforms.tokenizers") / "vocabularies" / f"{name}.bin").read_bytes())
    tokens, at = [], 0
    while at < len(packed):
        end = at + 1 + packed[at]
        tokens.append(packed[at + 1 : end])
        at = end
    return b"".join(
        [b"%b %d\n" % (b2a_base64(token, newline=False), rank) for rank, token in enumerate(tokens)]
    )
