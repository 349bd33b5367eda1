"""A document as it was read becomes a document ready to be cut, or a parse error that says what to do."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from transforms.errors import ParseError
from transforms.fingerprint import digest_of
from transforms.parsers import PARSERS, ParseSettings, blocks_of, parse
from transforms.records import Block, RawDocument, Source

SETTINGS = ParseSettings()


def parsed(content, media_type=None, settings=SETTINGS, **facts):
    return parse(RawDocument("d", content, media_type, **facts), settings)


def test_markdown_has_blocks_and_names_its_parser():
    document = parsed(b"# A\n\nb\n", "text/markdown")
    assert [block.kind for block in document.blocks] == ["heading", "paragraph"]
    assert (document.parser_name, document.parser_version) == ("markdown", "2")
    assert document.metadata == {}


def test_plain_text_is_parsed_and_has_no_blocks():
    document = parsed(b"# A\n", "text/plain")
    assert document.blocks == ()
    assert (document.parser_name, document.parser_version) == ("plain_text", "1")


@pytest.mark.parametrize("media_type", ["text/css", "application/json", "text/x-python", "text/x-unheard-of"])
def test_text_without_a_parser_is_read_as_plain_text_and_keeps_its_type(media_type):
    document = parsed(b"{}", media_type)
    assert (document.media_type, document.parser_name, document.blocks) == (media_type, "plain_text", ())


@pytest.mark.parametrize(
    "media_type", ["application/pdf", "image/png", "image/svg+xml", "application/x-unheard-of"]
)
def test_a_binary_format_has_no_parser(media_type):
    with pytest.raises(ParseError, match=media_type.replace("+", r"\+")) as refused:
        parsed(b"anything", media_type)
    assert refused.value.reason == "no_parser"


def test_text_that_someone_took_from_a_binary_format_is_text():
    document = parsed("extracted", "application/pdf")
    assert (document.text, document.media_type) == ("extracted", "application/pdf")


def test_the_name_of_the_object_tells_an_undeclared_type():
    for media_type in (None, "application/octet-stream"):
        assert parsed(b"# A", media_type, source=Source(uri="gs://b/x.MD")).parser_name == "markdown"
    assert parsed(b"# A", None).media_type == "text/plain"
    assert parsed(b"# A", None, source=Source(uri="gs://b/x.parquet", row=3)).media_type == "text/plain"


def test_a_declared_type_is_normalised_and_its_charset_used():
    document = parsed("# Köln".encode("cp1252"), "Text/X-Markdown; Charset=Windows-1252")
    assert (document.media_type, document.text) == ("text/markdown", "# Köln")
    assert document.metadata["decoding"] == {"encoding": "cp1252"}


def test_a_charset_of_its_own_goes_before_that_of_the_type():
    assert parsed("ж".encode("koi8-r"), "text/plain; charset=cp1251", charset="koi8-r").text == "ж"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_one_text_in_three_encodings_is_one_document(encoding):
    document = parsed("\ufeff# Fähre\n\nAbfahrt 9:00\n".encode(encoding), "text/markdown")
    assert document.text == "# Fähre\n\nAbfahrt 9:00\n"
    assert document.blocks[0].title == "Fähre"


def test_what_decoding_did_is_recorded():
    assert parsed(b"\xef\xbb\xbfa\r\nb\rc\xff").metadata["decoding"] == {
        "encoding": "utf-8",
        "bom_removed": True,
        "newlines_normalized": 2,
        "replacements": 1,
    }
    assert parsed("a\ud800").metadata["decoding"] == {"surrogates_replaced": 1}
    assert parsed("a", metadata={"k": "v"}).metadata == {"k": "v"}


def test_front_matter_is_metadata_and_gives_a_title_where_there_is_none():
    text = "---\ntitle: T\ndate: 2024-05-06\n---\n"
    document = parsed(text, "text/markdown", metadata={"k": "v"})
    assert document.title == "T"
    assert document.metadata == {"k": "v", "front_matter": {"title": "T", "date": "2024-05-06"}}
    assert parsed(text, "text/markdown", title="Own").title == "Own"
    assert parsed("---\ntitle: [T]\n---\n", "text/markdown").title is None


def test_facts_are_handed_on_unchanged():
    facts = {"language": "de", "license": "MIT", "acl_labels": ("a", "b"), "tenant_id": "t", "title": "T"}
    document = parsed("text", **facts)
    assert {name: getattr(document, name) for name in facts} == facts


def test_the_digest_of_the_source_is_filled_in_where_it_is_missing():
    assert parsed(b"a\r\n").source.content_sha256 == hashlib.sha256(b"a\r\n").hexdigest()
    assert parsed("ä").source.content_sha256 == hashlib.sha256("ä".encode()).hexdigest()
    assert parsed("a\ud800").source.content_sha256
    assert parsed(b"a", source=Source(content_sha256="known")).source.content_sha256 == "known"


PIECES = st.sampled_from(
    ["\ufeff", "a", "ä", "\r\n", "\r", "\n", "@@1\t2\t3\t4\t5##", "\0", "\ufffd", "🥊", "# b\n"]
)


@given(
    st.lists(PIECES).map("".join),
    st.sampled_from([None, "utf-8", "utf-16", "latin-1", "cp1252"]),
    st.sampled_from([None, "utf-8", "latin-1"]),
    st.sampled_from(["text/plain", "text/markdown", "text/html"]),
    st.booleans(),
    st.booleans(),
)
def test_a_digest_that_a_document_has_is_that_of_its_text(text, encoding, charset, media_type, tags, is_read):
    content = text.encode(encoding, "replace") if encoding else text
    raw = RawDocument("d", content, media_type, charset)
    raw.digest = digest_of(content) if is_read else None
    try:
        document = parse(raw, ParseSettings(position_tags=tags))
    except ParseError:
        return
    assert document.digest in (None, digest_of(document.text))


def test_a_digest_taken_in_reading_goes_with_the_text_as_long_as_it_is_the_same():
    raw = RawDocument("d", "ä")
    raw.digest = digest_of("ä")
    document = parse(raw, SETTINGS)
    assert document.digest is raw.digest
    assert parsed("ä", source=Source(content_sha256="of something else")).digest is None
    assert replace(document, text="b").digest is None
    assert replace(raw, content="b").digest is None


@pytest.mark.parametrize("content", [b"a" * 11, "é" * 6])
def test_a_text_over_the_limit_is_refused_with_the_flag_to_raise(content):
    with pytest.raises(ParseError, match=r"10; raise --max_text_bytes") as refused:
        parsed(content, settings=ParseSettings(max_text_bytes=10))
    assert refused.value.reason == "too_large"
    assert parsed(content[:5], settings=ParseSettings(max_text_bytes=10))


def test_the_policy_for_undecodable_bytes_is_the_setting():
    assert parsed(b"caf\xe9", settings=ParseSettings(on_undecodable="windows-1252")).text == "café"
    with pytest.raises(ParseError, match="undecodable"):
        parsed(b"caf\xe9", settings=ParseSettings(on_undecodable="fail"))


@pytest.mark.parametrize(
    "setting",
    [{"on_undecodable": "guess"}, {"max_text_bytes": 0}, {"unheard_of": 1}, {"markdown": "perhaps"}],
)
def test_a_setting_that_means_nothing_is_refused(setting):
    with pytest.raises(ValidationError, match=next(iter(setting))):
        ParseSettings(**setting)


def test_settings_do_not_change():
    with pytest.raises(ValidationError):
        SETTINGS.markdown = False


def test_markdown_may_be_left_for_the_chunker_to_parse():
    now, later = (
        parsed("# A\n", "text/markdown"),
        parsed("# A\n", "text/markdown", ParseSettings(markdown=False)),
    )
    assert later.blocks is None
    assert blocks_of(later) == blocks_of(now) == now.blocks
    assert parsed("# A\n", "text/plain", ParseSettings(markdown=False)).blocks == ()


class TestBlocksThatCameWithTheText:
    @pytest.mark.parametrize("kind", [str, bytes])
    def test_they_move_with_the_text(self, kind):
        text = "\ufeffone\r\ntwo\r\rthree\r\n"
        spans = [(0, 4), (6, 9), (11, 16)]
        blocks = tuple(Block("paragraph", *span) for span in spans)
        document = parsed(text if kind is str else text.encode(), "text/markdown", blocks=blocks)
        texts = [document.text[block.start : block.end] for block in document.blocks]
        assert texts == ["one", "two", "three"]

    def test_they_stay_where_nothing_moves(self):
        blocks = (Block("title", 0, 3), Block("paragraph", 4, 7))
        assert parsed("one\ntwo", "text/markdown", blocks=blocks).blocks is blocks
        assert parsed("one\ntwo", blocks=()).blocks == ()

    def test_what_is_left_empty_is_dropped(self):
        assert parsed("a\r\n", blocks=(Block("other", 1, 2),)).blocks == ()

    @pytest.mark.parametrize("spans", [[(0, 9)], [(2, 1)], [(0, 2), (1, 3)], [(-1, 2)]])
    def test_those_that_do_not_fit_are_refused(self, spans):
        with pytest.raises(ParseError, match="code points") as refused:
            parsed("text", blocks=tuple(Block("paragraph", *span) for span in spans))
        assert refused.value.reason == "bad_blocks"

    @given(st.text(st.sampled_from("ab\r\n\ufeff"), max_size=20), st.data())
    def test_they_hold_the_same_characters_as_before(self, text, data):
        cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
        spans = list(pairwise(cuts))
        document = parsed(text, blocks=tuple(Block("paragraph", *span) for span in spans))
        before = (text[start:end] for start, end in spans)
        after = (document.text[block.start : block.end] for block in document.blocks)
        assert words(after) == words(before)


def words(texts):
    return [found for text in texts if (found := text.replace("\ufeff", "").split())]


def test_every_parser_takes_any_text():
    for parser in PARSERS.values():
        blocks, metadata = parser.read("# A\r\n\0\ud800")
        assert isinstance(blocks, tuple)
        assert isinstance(metadata, dict)


def test_importing_the_parsers_loads_no_parser_library():
    code = "import sys, transforms.parsers; print({'apache_beam', 'multimark', 'yaml'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
