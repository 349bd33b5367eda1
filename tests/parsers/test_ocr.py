"""An OCR result becomes a document that the chunkers take like any other."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from transforms.chunkers import get_chunker
from transforms.errors import ParseError
from transforms.parsers import ParseSettings, parse
from transforms.parsers.ocr import OcrRegion, OcrResult
from transforms.records import Location, RawDocument, Source

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
REGIONS = st.builds(
    OcrRegion,
    text=st.text(st.sampled_from("ab \n\r\t港é\ufeff."), max_size=12),
    confidence=st.none() | NUMBERS,
    box=st.none() | st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    page=st.none() | st.integers(1, 9),
)


def slices(document):
    return [document.text[block.start : block.end] for block in document.blocks]


def test_regions_become_paragraphs_in_order():
    result = OcrResult(
        engine="tesseract",
        regions=(
            OcrRegion(text="Harbour rules\napply.", confidence=0.93, box=(10, 30, 200, 42), page=1),
            OcrRegion(text="Report to the warden.", page=2),
            OcrRegion(text="No boats.", confidence=0),
        ),
    )
    document = result.to_document("scan-1")
    assert document.text == "Harbour rules\napply.\n\nReport to the warden.\n\nNo boats."
    assert slices(document) == ["Harbour rules\napply.", "Report to the warden.", "No boats."]
    assert {block.kind for block in document.blocks} == {"paragraph"}
    assert [block.locations for block in document.blocks] == [
        (Location(1, (10, 30, 200, 42)),),
        (Location(2),),
        (),
    ]
    assert [block.attributes for block in document.blocks] == [
        {"ocr_engine": "tesseract", "ocr_confidence": "0.93"},
        {"ocr_engine": "tesseract"},
        {"ocr_engine": "tesseract", "ocr_confidence": "0.0"},
    ]
    assert (document.parser_name, document.parser_version, document.media_type) == ("ocr", "1", "text/plain")


def test_boxes_without_a_page_are_on_page_1():
    result = OcrResult(engine="e", regions=(OcrRegion(text="a", box=(0, -1.5, 2, 3)),))
    assert result.to_document("d").blocks[0].locations == (Location(1, (0, -1.5, 2, 3)),)


def test_blank_regions_are_dropped():
    result = OcrResult(
        engine="e", regions=tuple(OcrRegion(text=text) for text in ("", " \n", " a ", "\t", "b\r\n"))
    )
    assert slices(result.to_document("d")) == ["a", "b"]
    nothing = OcrResult(engine="e", regions=(OcrRegion(text=" "),)).to_document("d")
    assert (nothing.text, nothing.blocks) == ("", ())


def test_what_is_known_of_the_document_is_handed_on():
    about = {
        "title": "Rules",
        "language": "en",
        "license": "CC0-1.0",
        "acl_labels": ("public",),
        "tenant_id": "harbour",
        "metadata": {"scanner": "B"},
        "source": Source(uri="s3://scans/1.png"),
    }
    document = OcrResult(engine="e", regions=(OcrRegion(text="a"),)).to_document("d", **about)
    assert {name: getattr(document, name) for name in about} == about


def test_a_result_is_read_from_json_and_a_wrong_one_is_refused():
    text = '{"engine": "e", "regions": [{"text": "a", "box": [1, 2, 3, 4], "page": 3, "confidence": 88}]}'
    (block,) = OcrResult.model_validate_json(text).to_document("d").blocks
    assert (block.locations, block.attributes["ocr_confidence"]) == ((Location(3, (1, 2, 3, 4)),), "88.0")


@pytest.mark.parametrize(
    "region",
    [
        {},
        {"text": None},
        {"text": "a", "page": 0},
        {"text": "a", "box": (1, 2, 3)},
        {"text": "a", "box": (1, 2, 3, float("nan"))},
        {"text": "a", "confidence": float("inf")},
        {"text": "a", "bbox": (1, 2, 3, 4)},
    ],
)
def test_a_region_that_makes_no_sense_is_refused(region):
    with pytest.raises(ValidationError):
        OcrResult.model_validate({"engine": "e", "regions": [region]})


def test_scanned_pages_run_through_the_chunkers():
    lines = ["Harbour rules apply to every boat.", "Report to the warden on arrival.", "No fires."]
    regions = tuple(
        OcrRegion(text=line, page=page, box=(0, page, 9, page + 1)) for page, line in enumerate(lines, 1)
    )
    document = OcrResult(engine="e", regions=regions).to_document("d")
    chunks = get_chunker("heading_aware", chunk_size=10, chunk_overlap=0).chunk(document)
    assert [chunk.text for chunk in chunks] == lines
    assert [chunk.locations for chunk in chunks] == [region.locations for region in regions]


@given(st.lists(REGIONS, max_size=6))
def test_every_region_that_is_not_blank_is_one_paragraph(regions):
    document = OcrResult(engine="e", regions=tuple(regions)).to_document("d")
    kept = [region for region in regions if region.text.removeprefix("\ufeff").strip()]
    assert [block.locations for block in document.blocks] == [region.locations for region in kept]
    assert "\n\n".join(slices(document)) == document.text
    seen = "".join("".join(region.text.removeprefix("\ufeff").split()) for region in kept)
    assert "".join(document.text.split()) == seen


# -------------------------------------------------------------------------------------------------- as a file


def parsed(content, uri="scans/scan.ocr.json", media_type=None, **facts):
    raw = RawDocument("scan", content, media_type, source=Source(uri=uri), **facts)
    return parse(raw, ParseSettings())


SCAN = b"""{"engine": "tesseract", "regions": [
  {"text": "Harbour rules apply.", "confidence": 0.9, "box": [10, 30, 200, 42], "page": 1},
  {"text": "No boats.", "page": 2}
]}"""


def test_a_file_by_the_name_of_an_ocr_result_is_the_document_that_was_scanned():
    document = parsed(SCAN, title="Rules", tenant_id="port", acl_labels=("a",))
    assert document.text == "Harbour rules apply.\n\nNo boats."
    assert (document.parser_name, document.media_type) == ("ocr", "application/vnd.chunkmill.ocr+json")
    assert (document.title, document.tenant_id, document.acl_labels) == ("Rules", "port", ("a",))
    assert document.source.content_sha256 == hashlib.sha256(SCAN).hexdigest()
    (chunk,) = get_chunker("recursive").chunk(document)
    assert chunk.locations == (Location(1, (10, 30, 200, 42)), Location(2))


def test_the_media_type_tells_an_ocr_result_too():
    assert parsed(SCAN, "scans/1", "application/vnd.chunkmill.ocr+json").text.startswith("Harbour")
    assert parsed(SCAN.decode(), "scans/1", "Application/vnd.chunkmill.OCR+json").text.startswith("Harbour")


def test_other_json_is_no_ocr_result():
    assert parsed(SCAN, "scans/scan.json").parser_name == "plain_text"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "Invalid JSON"),
        (b"[]", "should be an object"),
        (b'{"regions": []}', "engine: Field required"),
        (
            b'{"engine": "e", "regions": [{"text": "a", "page": 0}]}',
            "regions.0.page: Input should be greater",
        ),
        (b'{"engine": "e", "regions": [{"text": "a", "angle": 1}]}', "regions.0.angle: Extra inputs"),
        (b"[" * 100_000, "Invalid JSON"),
    ],
)
def test_what_should_be_an_ocr_result_and_is_none_is_refused_with_the_place(content, message):
    with pytest.raises(ParseError, match=message) as refused:
        parsed(content)
    assert refused.value.reason == "bad_ocr"


def test_an_ocr_result_without_regions_is_a_blank_document():
    document = parsed(b'{"engine": "e", "regions": []}')
    assert get_chunker("recursive").chunk_document(document).status == "blank"
