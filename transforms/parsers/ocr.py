"""OCR: what an engine has read from scanned pages, as a document with a paragraph for each region."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from transforms.errors import ParseError
from transforms.parsers.decoding import normalize
from transforms.records import Block, Document, Location, Source

OCR_PARSER = ("ocr", "1")
"""Name and version of the parser; the version is raised when the same result gives another document."""

_BETWEEN_REGIONS = "\n\n"


class OcrRegion(BaseModel):
    """A piece of a page that was read as one.

    Args:
        text: What was read.
        confidence: How sure the engine is, on its own scale; None if it does not say.
        box: Left, top, right and bottom in the page's own unit; None if the engine does not say.
        page: Page number, from 1; None for an image that has no pages, whose boxes are on page 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    confidence: FiniteFloat | None = None
    box: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat] | None = None
    page: Annotated[int, Field(ge=1, lt=2**31)] | None = None

    @property
    def locations(self) -> tuple[Location, ...]:
        """Where it stands; nothing if neither page nor box is known."""
        if self.page is None and self.box is None:
            return ()
        return (Location(self.page or 1, self.box),)


class OcrResult(BaseModel):
    """All that an engine has read from one document.

    Args:
        engine: Name of the engine.
        regions: What it has read, in reading order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    regions: tuple[OcrRegion, ...]

    def to_document(
        self,
        document_id: str,
        *,
        title: str | None = None,
        language: str | None = None,
        license: str | None = None,
        acl_labels: tuple[str, ...] | None = None,
        tenant_id: str | None = None,
        metadata: Mapping[str, object] | None = None,
        source: Source | None = None,
    ) -> Document:
        """The document that was scanned: a paragraph for each region that is not blank, a blank line between two.

        The white space around the text of a region is left out. A paragraph has the attributes `ocr_engine` and,
        if it is known, `ocr_confidence`.

        Args:
            document_id: Id, unique in the corpus.
            title: Title.
            language: BCP 47 tag.
            license: SPDX expression.
            acl_labels: Labels of those who may read it.
            tenant_id: Owner.
            metadata: Further facts.
            source: Where the scan came from.
        """
        texts: list[str] = []
        blocks: list[Block] = []
        start = 0
        for region in self.regions:
            text = normalize(region.text).text.strip()
            if text:
                attributes = {"ocr_engine": self.engine}
                if region.confidence is not None:
                    attributes["ocr_confidence"] = str(region.confidence)
                end = start + len(text)
                blocks.append(
                    Block("paragraph", start, end, locations=region.locations, attributes=attributes)
                )
                texts.append(text)
                start = end + len(_BETWEEN_REGIONS)
        return Document(
            document_id=document_id,
            text=_BETWEEN_REGIONS.join(texts),
            blocks=tuple(blocks),
            title=title,
            language=language,
            license=license,
            acl_labels=acl_labels,
            tenant_id=tenant_id,
            metadata=metadata or {},
            source=source or Source(),
            parser_name=OCR_PARSER[0],
            parser_version=OCR_PARSER[1],
        )


def read_ocr(text: str) -> OcrResult:
    """The OCR result that a JSON text is: `{"engine": "...", "regions": [{"text": "...", "page": 1}, ...]}`.

    Args:
        text: The text.

    Raises:
        ParseError: `bad_ocr`, if it is none.
    """
    try:
        return OcrResult.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = f"{place}: {first['msg']}" if place else first["msg"]
        raise ParseError("bad_ocr", f"is no OCR result: {what}; it needs `engine` and `regions`") from None
