"""The documents that are measured: a table of texts in Parquet, or an even sample of it, whole or cut small."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from transforms.parsers import ParseSettings, parse
from transforms.records import Document, RawDocument

# Some peers need minutes for one document of this many bytes.
LARGEST = 2_000_000
SMALL = 2048


@dataclass(frozen=True, slots=True)
class Text:
    """A document as the corpus holds it.

    Args:
        document_id: Its id.
        text: Its text.
        media_type: Its media type.
        size: Bytes of its text in UTF-8.
    """

    document_id: str
    text: str
    media_type: str
    size: int


def texts(folder: Path) -> Iterator[Text]:
    """The texts of all Parquet files in a folder, but for empty ones and those of more than `LARGEST` bytes.

    Args:
        folder: Folder of files with the columns `document_id`, `text` and `media_type`.
    """
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise SystemExit(f"{folder} holds no *.parquet")
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(512, columns=["document_id", "text", "media_type"]):
            for row in batch.to_pylist():
                size = len((row["text"] or "").encode())
                if 0 < size <= LARGEST:
                    yield Text(row["document_id"], row["text"], row["media_type"] or "text/plain", size)


def sample(whole: Sequence[Text], budget: int) -> list[Text]:
    """Documents of about `budget` bytes: of every media type its share of the corpus, and one at least.

    Which ones, and their order, follow from their ids alone, so that the sample is always the same and the first
    part of it is a sample too.

    Args:
        whole: The corpus.
        budget: Bytes of text.
    """
    share = min(1.0, budget / sum(text.size for text in whole))
    by_type: dict[str, list[Text]] = defaultdict(list)
    for text in sorted(whole, key=_rank):
        by_type[text.media_type].append(text)
    chosen: list[Text] = []
    for ranked in by_type.values():
        left = share * sum(text.size for text in ranked) + 1
        fitting = []
        for text in ranked:
            if text.size <= left:
                fitting.append(text)
                left -= text.size
        chosen += fitting or [min(ranked, key=lambda text: text.size)]
    return sorted(chosen, key=_rank)


def cut_small(whole: Iterable[Text]) -> Iterator[Text]:
    """The same texts as documents of `SMALL` bytes, cut between code points.

    Args:
        whole: The texts.
    """
    for text in whole:
        data = text.text.encode()
        start = 0
        while start < len(data):
            end = start + SMALL
            while end < len(data) and data[end] & 0xC0 == 0x80:
                end -= 1
            part = data[start:end]
            yield Text(f"{text.document_id}#{start}", part.decode(), text.media_type, len(part))
            start = end


def parsed(raw: Iterable[Text]) -> list[Document]:
    """The texts as the job would hand them to a chunker: normalised, and with their blocks.

    Args:
        raw: The texts.
    """
    settings = ParseSettings()
    return [parse(RawDocument(text.document_id, text.text, text.media_type), settings) for text in raw]


def megabytes(documents: Sequence[Document]) -> float:
    """Size of some documents: UTF-8, a million bytes each."""
    return sum(len(document.text.encode()) for document in documents) / 1e6


def _rank(text: Text) -> str:
    return hashlib.sha256(text.document_id.encode()).hexdigest()
