"""The documents that are measured: a table of texts in Parquet, or an even sample of it, whole or cut small."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from transforms.parsers import ParseSettings, parse
from transforms.records import Document, RawDocument, Source

# Some peers need minutes for one document of this many bytes.
LARGEST = 2_000_000
SMALL = 2048
_COLUMNS = ("document_id", "text", "media_type", "uri")


@dataclass(frozen=True, slots=True)
class Text:
    """A document as the corpus holds it.

    Args:
        document_id: Its id.
        text: Its text.
        media_type: Its media type.
        uri: Its address; empty if the corpus does not tell.
        size: Bytes of its text in UTF-8.
    """

    document_id: str
    text: str
    media_type: str
    uri: str
    size: int


def texts(folder: Path, largest: int = LARGEST) -> Iterator[Text]:
    """The texts of all Parquet files in a folder and below, but for empty ones and those that are too large.

    Args:
        folder: Folder of files with the columns `document_id`, `text` and `media_type`, and perhaps `uri`.
        largest: Bytes of the largest that is taken.
    """
    files = sorted(folder.rglob("*.parquet"))
    if not files:
        raise SystemExit(f"{folder} holds no *.parquet")
    for path in files:
        file = pq.ParquetFile(path)
        columns = [name for name in file.schema_arrow.names if name in _COLUMNS]
        for batch in file.iter_batches(512, columns=columns):
            for row in batch.to_pylist():
                size = len((row["text"] or "").encode())
                if 0 < size <= largest:
                    media_type, uri = row["media_type"] or "text/plain", row.get("uri") or ""
                    yield Text(row["document_id"], row["text"], media_type, uri, size)


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
            yield replace(text, document_id=f"{text.document_id}#{start}", text=part.decode(), size=len(part))
            start = end


def parsed(raw: Iterable[Text]) -> list[Document]:
    """The texts as the job would hand them to a chunker: normalised, and with their blocks.

    Args:
        raw: The texts.
    """
    settings = ParseSettings()
    return [parse(_raw(text), settings) for text in raw]


def _raw(text: Text) -> RawDocument:
    return RawDocument(text.document_id, text.text, text.media_type, source=Source(uri=text.uri))


def megabytes(documents: Sequence[Document]) -> float:
    """Size of some documents: UTF-8, a million bytes each."""
    return sum(len(document.text.encode()) for document in documents) / 1e6


def _rank(text: Text) -> str:
    return hashlib.sha256(text.document_id.encode()).hexdigest()
