"""What a verification reads: the columns of the files have the names of the fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from transforms.records import Span
from transforms.verify.report import Fault


class Chunk(NamedTuple):
    """A chunk and where it stands; only the last two fields may be null."""

    file: str
    row: int
    chunker: str
    document_id: str
    chunk_index: int
    chunk_id: str
    chunk_count: int
    text: str
    token_count: int
    start_char: int
    end_char: int
    start_byte: int
    end_byte: int
    overlap_chars: int
    line_start: int
    line_end: int
    is_derived: bool
    over_budget: bool
    chunker_hash: str
    parent_id: str | None
    spans: Sequence[Mapping[str, int]] | None

    @property
    def pieces(self) -> Sequence[Span]:
        """The spans, one of them or more."""
        if self.spans is None:
            return [(self.start_char, self.end_char)]
        return [(span["start"], span["end"]) for span in self.spans]


class Entry(NamedTuple):
    """A row of the ledger and where it stands."""

    file: str
    row: int
    chunker: str
    document_id: str
    chunker_hash: str | None
    source_name: str | None
    source_uri: str | None
    source_row: int | None
    content_sha256: str | None
    text_sha256: str | None
    parser_name: str | None
    parser_version: str | None
    status: str
    reason: str | None
    chunk_count: int | None
    token_count: int | None
    over_budget_count: int | None
    char_count: int | None
    byte_count: int | None
    lost_chars: int | None
    removed_chars: int | None
    text: str | None


class Letter(NamedTuple):
    """A dead letter and where it stands."""

    file: str
    row: int
    chunker: str
    document_id: str
    reason: str


class Again(NamedTuple):
    """A document that was read again; without text if it could not be."""

    document_id: str
    source_uri: str
    source_row: int | None
    content_sha256: str | None
    parser_name: str | None
    parser_version: str | None
    text: str | None


Row = Chunk | Entry | Letter
Place = tuple[str | None, int | None]
KINDS: Mapping[str, type[Row]] = {"chunks": Chunk, "documents": Entry, "dead_letters": Letter}
_Kind = TypeVar("_Kind", Chunk, Entry, Letter, Again)


def of_kind(kind: type[_Kind], items: Iterable[Row | Again]) -> list[_Kind]:
    """Those of some rows that are of one kind."""
    return [item for item in items if isinstance(item, kind)]


def fault_of(row: Row, check: str, message: str) -> Fault:
    """A fault of one row."""
    return Fault(row.file, row.row, row.document_id, check, message)
