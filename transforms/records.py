"""What flows through the job: documents with their blocks, chunks, and what could not be processed.

Documents, sources and blocks are not frozen, since to make a frozen one takes three times as long; nothing changes one
once it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from transforms.errors import DocumentError
from transforms.fingerprint import Digest
from transforms.provenance import ChunkerRecord

BlockKind = Literal[
    "heading",
    "paragraph",
    "list_item",
    "table",
    "table_row",
    "code",
    "quote",
    "caption",
    "title",
    "abstract",
    "figure",
    "other",
]
Status = Literal["ok", "blank", "skipped", "failed", "deleted"]
ABSENT: tuple[Status, ...] = ("failed", "deleted")
"""States of documents that the table does not hold."""
Span = tuple[int, int]
LONGEST_TITLE = 1000
"""Characters that a parser keeps of the title of a heading or a document."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where on a page something stands.

    Args:
        page: Page number, from 1.
        box: Left, top, right and bottom in the page's own unit, or None where only the page is known.
    """

    page: int
    box: tuple[float, float, float, float] | None = None


@dataclass(slots=True, unsafe_hash=True)
class Block:
    """A typed piece of a document.

    Args:
        kind: What the piece is.
        start: First character, in code points of `Document.text`.
        end: End of the half-open span, in code points.
        level: Heading level, 1 to 6; None for every other kind.
        title: Plain text of a heading, without markup; None for every other kind.
        locations: Pages and boxes it stands on.
        images: References to its images.
        attributes: What the parser knew besides, such as the language of a code block.
    """

    kind: BlockKind
    start: int
    end: int
    level: int | None = None
    title: str | None = None
    locations: tuple[Location, ...] = ()
    images: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, unsafe_hash=True)
class Source:
    """Where a document came from.

    Args:
        name: Name of the data set, the `source` partition of the table.
        uri: Address of the object that held it, without credentials or query.
        row: Position in that object, from 0, where it holds many documents.
        version: Generation or version id the store gave, if any.
        etag: Entity tag the store gave, if any.
        size: Bytes of the object.
        modified_at: Time of its last change, microseconds since 1970 in UTC.
        content_sha256: SHA-256 of the document's source bytes, in hex.
        input_uri: File that held it, where that is not `uri`.
        input_state: Digest of what the store told of that file.
    """

    name: str = "documents"
    uri: str = ""
    row: int | None = None
    version: str | None = None
    etag: str | None = None
    size: int | None = None
    modified_at: int | None = None
    content_sha256: str | None = None
    input_uri: str | None = None
    input_state: str | None = None


@dataclass(slots=True, unsafe_hash=True)
class RawDocument:
    """A document as it was read: its bytes, or text that needs no decoding.

    Args:
        document_id: Id, unique in the corpus.
        content: The bytes, or text that the source held as text.
        media_type: Media type, as declared or told by the file name; None if neither says.
        charset: Declared character set of `content`, if any.
        blocks: Blocks that came with the text, or None.
        title: Title, if the source had one.
        language: BCP 47 tag.
        license: SPDX expression.
        acl_labels: Labels of those who may read it, handed on unchanged.
        tenant_id: Owner, handed on unchanged.
        metadata: Further facts.
        source: Where it came from.

    Attributes:
        digest: Digest of `content` as it was stored, so that a text which has one has no surrogates; None where
            reading did not take it. `dataclasses.replace` forgets it.
    """

    document_id: str
    content: bytes | str
    media_type: str | None = None
    charset: str | None = None
    blocks: tuple[Block, ...] | None = None
    title: str | None = None
    language: str | None = None
    license: str | None = None
    acl_labels: tuple[str, ...] | None = None
    tenant_id: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    source: Source = field(default_factory=Source)
    digest: Digest | None = field(default=None, init=False, repr=False, compare=False)


@dataclass(slots=True, unsafe_hash=True)
class Document:
    """One text, ready to be cut.

    Args:
        document_id: Id, unique in the corpus.
        text: The text; spans count its code points.
        media_type: Media type, such as `text/markdown`.
        blocks: Top-level blocks in order, without overlap; None if nobody has parsed the text yet.
        title: Title.
        language: BCP 47 tag.
        license: SPDX expression.
        acl_labels: Labels of those who may read it, handed on unchanged to every chunk.
        tenant_id: Owner, handed on unchanged to every chunk.
        metadata: Further facts, written as canonical JSON.
        source: Where it came from.
        parser_name: What turned the source's bytes into `text`.
        parser_version: Version of that parser.

    Attributes:
        digest: Digest of `text` in UTF-8, if it is known from reading; such a text has no surrogates.
            `dataclasses.replace` forgets it.

    Raises:
        ValueError: If a block lies outside the text, is empty, or overlaps the one before it.
    """

    document_id: str
    text: str
    media_type: str = "text/plain"
    blocks: tuple[Block, ...] | None = None
    title: str | None = None
    language: str | None = None
    license: str | None = None
    acl_labels: tuple[str, ...] | None = None
    tenant_id: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    source: Source = field(default_factory=Source)
    parser_name: str | None = None
    parser_version: str | None = None
    digest: Digest | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        held, last = 0, len(self.text)
        for block in self.blocks or ():
            end = block.end
            if not held <= block.start < end <= last:
                raise ValueError(
                    f"document {self.document_id!r}: {block.kind} block [{block.start}, {end}) "
                    f"must begin at or after {held}, the end of the block before it, be non-empty, "
                    f"and end by {last}"
                )
            held = end


class Chunk(NamedTuple):
    """One or more spans of one document, in order, with what retrieval needs to know of them.

    A tuple, of which many are made and turned into columns at little cost.

    Args:
        chunk_id: Id, the same in every run with the same text and chunker.
        document_id: Id of the document.
        index: Position among the document's chunks, from 0.
        text: The spans joined, unless `is_derived`.
        token_count: Tokens of `text`.
        spans: Half-open spans in code points of `Document.text`, in order.
        byte_span: The hull of the spans in bytes of the UTF-8 text.
        overlap: Leading characters that the chunk before holds too.
        lines: First and last line, from 1.
        kind: `body`, `heading`, `table`, `code`, ...
        strategy: Strategy that cut it, with its fallback: `heading:recursive`.
        heading_level: Level, on heading chunks.
        heading_path: Titles of the headings in force at its start, outermost first.
        parent_id: Id of an earlier chunk of the same document that this one stands under.
        context: Text to put before `text` when embedding; None if there is none.
        locations: Pages and boxes of the blocks it touches.
        images: Image references of those blocks.
        is_derived: Whether `text` is made from the spans rather than their slice.
        over_budget: Whether `text` is larger than the budget, which the strategy promised to allow.
        acl_labels: The document's labels.
        tenant_id: The document's owner.
    """

    chunk_id: str
    document_id: str
    index: int  # type: ignore[assignment]  # where a tuple has a method that nobody asks a chunk for
    text: str
    token_count: int
    spans: tuple[Span, ...]
    byte_span: Span
    overlap: int
    lines: Span
    kind: str
    strategy: str
    heading_level: int | None = None
    heading_path: tuple[str, ...] = ()
    parent_id: str | None = None
    context: str | None = None
    locations: tuple[Location, ...] = ()
    images: tuple[str, ...] = ()
    is_derived: bool = False
    over_budget: bool = False
    acl_labels: tuple[str, ...] | None = None
    tenant_id: str | None = None

    @property
    def contextual_text(self) -> str:
        """What to embed: the context, a blank line and the text; the text alone where there is no context."""
        return self.text if self.context is None else f"{self.context}\n\n{self.text}"

    @property
    def start(self) -> int:
        """First character of the hull, in code points."""
        return self.spans[0][0]

    @property
    def end(self) -> int:
        """End of the hull, in code points."""
        return self.spans[-1][1]


@dataclass(slots=True, unsafe_hash=True)
class DocumentChunks:
    """A document with all of its chunks, or with the reason why it has none.

    Args:
        document: The document that was cut.
        chunks: All of its chunks, in order.
        status: `ok`, `blank` or `skipped`.
        chunker: The chunker that cut it.
        lost: Non-whitespace characters that no chunk holds; 0, or the law of coverage is broken.
        reason: Why it was skipped.
        notes: What was done to the document besides cutting it, by name, with how often.
        removed: Non-whitespace characters that a setting left out on purpose.
    """

    document: Document
    chunks: Sequence[Chunk]
    status: Status
    chunker: ChunkerRecord
    lost: int = 0
    reason: str | None = None
    notes: Mapping[str, int] = field(default_factory=dict)
    removed: int = 0


def path_of(document: Document) -> str:
    """Path or URI of a document itself; empty if all that is known is the table that held it."""
    source = document.source
    return "" if source.row is not None and source.uri.lower().endswith(".parquet") else source.uri


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A document, or a source of documents, that could not be processed.

    Args:
        document_id: Id of the document; the URI where no document was reached.
        stage: Where it failed: `read`, `parse`, `chunk` or `write`.
        reason: Short code of the kind of fault.
        message: What is wrong and what to do.
        source: Where it came from.
        documents: Documents lost with it: more than one where a row group could not be read.
        media_type: Media type, where it was known.
    """

    document_id: str
    stage: str
    reason: str
    message: str
    source: Source = field(default_factory=Source)
    documents: int = 1
    media_type: str | None = None


def dead_letter(document: RawDocument | Document, error: DocumentError) -> DeadLetter:
    """What is written of a document that a stage refused.

    Args:
        document: The document.
        error: Why it was refused.
    """
    return DeadLetter(
        document_id=document.document_id,
        stage=error.stage,
        reason=error.reason,
        message=error.message,
        source=document.source,
        media_type=document.media_type,
    )
