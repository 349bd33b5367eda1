"""What a verification looks for, and what it found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

CHECKS: Mapping[str, str] = {
    "manifest": "The manifests follow each other, and LATEST names the last.",
    "missing": "A file that a manifest names is there.",
    "bytes": "A file has the size that the manifest says.",
    "sha256": "A file has the digest that the manifest says.",
    "unreadable": "A file can be read.",
    "rows": "A file has as many rows as the manifest says.",
    "schema": "A file has the schema of its kind.",
    "foreign": "No data file is there that no manifest names.",
    "staging": "No staged file is left, but for waves and lists of what to retire of a run that may go on.",
    "chunkers": "The chunker that a file tells of is in `chunkers/`.",
    "order": "Rows are sorted by document, chunks by document and index.",
    "shard": "A document is in the shard of its id.",
    "partition": "A chunk lies in the folders of its source and of the keys of the table.",
    "null": "Columns of a chunk that always hold something do.",
    "chunk_id": "A chunk's id follows from document id, chunker, text and ordinal.",
    "unique": "No two chunks have one id.",
    "chunk_index": "Indexes of a document run from 0 without a gap.",
    "chunk_count": "A chunk says how many chunks its document has.",
    "chunker_hash": "A row has the fingerprint of the chunker of its partition.",
    "parent": "A parent is an earlier chunk of the same document.",
    "blank": "No chunk is blank.",
    "span": "Spans lie in the document and are as long as the text; starts and ends ascend.",
    "byte_span": "Byte offsets are those of the code points.",
    "overlap": "The overlap is what the chunk before holds too.",
    "lines": "Line numbers ascend and are those of the document.",
    "token_count": "Tokens, counted again, are as many.",
    "budget": "A chunk is within the budget or marked.",
    "changes": "The chunks that came with some commit, less those that left, are those that are there.",
    "ledger": "Counts and states of the ledger are those of the chunks and of the text.",
    "dead_letter": "A failed document has a dead letter, and the reverse.",
    "text_sha256": "The text of a document has the digest that the ledger says.",
    "slice": "The text of a chunk is a slice of the document's.",
    "coverage": "Every character, white space apart, is in a chunk.",
    "unlisted": "Every document of the inputs is in the ledger.",
    "unread": "Every document of the ledger is in the inputs.",
}
"""The checks, by the names that faults give them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it must be.

    Args:
        file: The file, relative to the output; the source of a document that the table lacks.
        row: Position of the row in that file, from 0; None if it is the whole file.
        document_id: The document; None if it is the whole file.
        check: One of `CHECKS`.
        message: What is wrong.
    """

    file: str
    row: int | None
    document_id: str | None
    check: str
    message: str

    def __str__(self) -> str:
        row = "" if self.row is None else f", row {self.row}"
        document = "" if self.document_id is None else f", document {self.document_id!r}"
        return f"{self.check}: {self.file}{row}{document}: {self.message}"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification looked at and what it found.

    Args:
        output: Root of the table.
        seq: Number of its last commit; 0 if there is none.
        checked: How many `files`, `bytes`, `rows`, and rows of each kind such as `chunks` and `documents` (the
            ledger) were looked at.
        documents_compared: Rows of the ledger whose document was at hand, from the inputs or the ledger.
        documents_recut: Those of them with the very text that was cut: it was cut again at every span.
        documents_changed: Those of them whose source is not what it was, which breaks no law.
        changed: Ids of the first of those.
        not_recounted: Chunks whose tokens were not counted again, by the tokenizer that is not at hand.
        fault_counts: Faults by check.
        faults: The first faults.
    """

    output: str
    seq: int
    checked: Mapping[str, int]
    documents_compared: int = 0
    documents_recut: int = 0
    documents_changed: int = 0
    changed: Sequence[str] = ()
    not_recounted: Mapping[str, int] = field(default_factory=dict)
    fault_counts: Mapping[str, int] = field(default_factory=dict)
    faults: Sequence[Fault] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not self.fault_counts

    def to_json(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return {"ok": self.ok, **asdict(self)}

    def summary(self) -> str:
        """The report as lines of plain text."""
        return "\n".join(f"{name:<11}{text}" for name, text in self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        checked = self.checked
        yield "table", f"{self.output}, commit {self.seq}"
        yield "files", f"{checked['files']:,}, {checked['bytes'] / 1e6:,.1f} MB, {checked['rows']:,} rows"
        compared = f"{self.documents_compared:,} compared with their text, {self.documents_recut:,} cut again"
        yield "documents", f"{checked['documents']:,}: {compared}"
        yield "chunks", f"{checked['chunks']:,}"
        for name, chunks in self.not_recounted.items():
            yield "", f"{chunks:,} not recounted: the tokenizer {name} is not at hand"
        if self.changed:
            more = ", ..." if self.documents_changed > len(self.changed) else ""
            yield "changed", f"{self.documents_changed:,}: {', '.join(map(repr, self.changed))}{more}"
        faults = sorted(self.fault_counts.items(), key=lambda item: (-item[1], item[0]))
        yield "faults", ", ".join(f"{times:,} {check}" for check, times in faults) or "none"
        for fault in self.faults:
            yield "", str(fault)
