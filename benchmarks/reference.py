"""tiktoken itself, what everything is measured against and recounted with."""

from __future__ import annotations

import gc
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import tiktoken

from transforms.tokenizers.encodings import ENCODINGS, _vocabulary

ENCODING = "cl100k_base"


@cache
def reference() -> tiktoken.Encoding:
    """The encoding as tiktoken makes it, also for peers that ask tiktoken for it by name: nothing is downloaded.

    haystack knows no other encoding than o200k_base, so that is put into tiktoken's registry too.
    """
    names = (ENCODING, "o200k_base")
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            key = hashlib.sha1(ENCODINGS[name].url.encode()).hexdigest()
            Path(folder, key).write_bytes(_vocabulary(name))
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        try:
            loaded = {name: tiktoken.get_encoding(name) for name in names}
            return loaded[ENCODING]
        finally:
            del os.environ["TIKTOKEN_CACHE_DIR"]
            if before is not None:
                os.environ["TIKTOKEN_CACHE_DIR"] = before


def plain_pass(texts: Iterable[str]) -> None:
    """Encode texts with tiktoken, one after the other: the unit of every ratio."""
    encode = reference().encode_ordinary
    for text in texts:
        encode(text)


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds that this process, all of its threads, spends on some work."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start
