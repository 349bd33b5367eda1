"""The strategy `json`: slices of the source text, each with the JSON path of what it begins with."""

from __future__ import annotations

import json
import re

import pytest

from transforms.chunkers import get_chunker
from transforms.records import Document, Source

LOG = json.dumps(
    {
        "title": "log",
        "body": " ".join(f"entry{n:04}" for n in range(500)),
        "list": [f"item{n:04}" for n in range(300)],
        "end": True,
    }
)


def result(text, media_type="application/json", uri="", **settings):
    settings = {"tokenizer": "character", **settings}
    document = Document("d", text, media_type, source=Source(uri=uri))
    return get_chunker("json", **settings).chunk_document(document)


def told(text, **settings):
    return [(*chunk.heading_path, chunk.text) for chunk in result(text, **settings).chunks]


def black(text):
    return "".join(text.split())


def check_nothing_is_lost(text, found):
    assert black("".join(chunk.text for chunk in found)) == black(text)


# ------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("size", [80, 100, 120, 160])
def test_every_key_is_in_one_chunk_whatever_its_value(size):
    stops = {f"stop-{n}": {} for n in range(1, 13)}
    value = {"ferry": {"stops": stops, "note": "", "crew": [], "captain": None, "open": False, "seats": 0}}
    text = json.dumps(value)
    chunker = get_chunker("json", chunk_size=size, tokenizer="character")
    found = chunker.chunk(Document("d", text, "application/json"))
    for key in (*stops, *value["ferry"]):
        assert sum(f'"{key}":' in chunk.text for chunk in found) == 1
    check_nothing_is_lost(text, found)
    assert max(chunk.token_count for chunk in found) <= size
    assert [chunk.text for chunk in chunker.chunk(Document("e", '{"other": 1}'))] == ['{"other": 1}']


@pytest.mark.parametrize("size", [12, 13, 14, 30])
def test_no_escape_of_a_string_is_cut(size):
    value = {"a": '\u00e9\n\u65e5\\\U0001f600"x' * 30}
    text = json.dumps(value, separators=(",", ":"))
    found = result(text, chunk_size=size).chunks
    assert max(chunk.token_count for chunk in found) <= size
    # What is read piece by piece, each between quotes of its own, is the string.
    pieces = [chunk.text for chunk in found]
    pieces[0], pieces[-1] = pieces[0].removeprefix('{"a":"'), pieces[-1].removesuffix('"}')
    assert "".join(json.loads(f'"{piece}"') for piece in pieces) == value["a"]


def test_small_neighbours_share_a_chunk_and_large_ones_are_opened():
    text = '{"a": 1, "b": 2, "items": [{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}], "z": [0]}'
    assert told(text, chunk_size=30) == [
        ("$", '{"a": 1, "b": 2,'),
        ("$.items", '"items": [{"n": 1}, {"n": 2},'),
        ("$.items[2]", '{"n": 3}, {"n": 4}],'),
        ("$.z", '"z": [0]}'),
    ]


def test_brackets_are_no_chunks_of_their_own():
    value = {"data": {"page": {"items": [{"name": "x" * 20, "n": n} for n in range(9)]}}}
    found = result(json.dumps(value), chunk_size=60).chunks
    assert all(re.search(r"\w", chunk.text) for chunk in found)
    assert found[-1].text.endswith("}]}}}")


def test_the_members_of_a_value_stand_under_its_first_chunk():
    found = result('{"a": [11, 22, 33, 44], "b": 5}', chunk_size=12).chunks
    assert [chunk.text for chunk in found] == ['{"a": [11,', "22, 33, 44],", '"b": 5}']
    assert [chunk.parent_id for chunk in found[1:]] == [found[0].chunk_id] * 2


def test_a_long_string_is_cut_like_prose_and_its_pieces_say_whose_they_are():
    found = result(LOG, chunk_size=500).chunks
    text = " ".join(chunk.text for chunk in found)
    assert re.findall(r"entry\d{4}", text) == [f"entry{n:04}" for n in range(500)]
    assert re.findall(r"item\d{4}", text) == [f"item{n:04}" for n in range(300)]
    assert '"title"' in text
    assert '"end"' in text
    assert max(chunk.token_count for chunk in found) <= 500
    entries = [chunk for chunk in found if "entry" in chunk.text]
    assert len(entries) > 9
    assert {chunk.context for chunk in entries} == {"$.body"}


def test_a_minified_string_without_spaces_is_cut_too():
    text = json.dumps({"blob": "x" * 5000})
    found = result(text, chunk_size=100).chunks
    check_nothing_is_lost(text, found)
    assert {chunk.heading_path for chunk in found} == {("$.blob",)}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN, "b": [-Infinity], "a": 1, "a": {"a": 2}}',
        '{"": {}, "x": [], "y": "", "z": [[], {}, [[]]]}',
        '{"k": "}{][\\"\\\\", "caf\\u00e9": "\\ud83d\\ude00"}',
        "\ufeff[1,\r\n 2]",
        "3",
        '"just a string, with commas"',
        "[]",
        " {} ",
    ],
)
def test_the_source_text_stays_as_it_stands(text):
    for size in (3, 8, 20, 200):
        found = result(text, chunk_size=size, context="none")
        assert found.notes == {}
        assert all(chunk.text == text[chunk.start : chunk.end] for chunk in found.chunks)
        check_nothing_is_lost(text, found.chunks)


def test_ten_thousand_levels_have_short_paths():
    text = '{"a":[' * 5000 + "1" + "]}" * 5000
    found = result(text, chunk_size=100).chunks
    check_nothing_is_lost(text, found)
    assert max(len(chunk.heading_path[0]) for chunk in found) <= 300
    assert found[len(found) // 2].heading_path[0].startswith("$.a[0].a[0]")


# -------------------------------------------------------------------------------------------------------- JSON lines

LINES = '{"a": 1}\n\n{"b": [1, 2, 3]}\r\nnull\n'


@pytest.mark.parametrize(
    "how",
    [
        {"media_type": "application/jsonl"},
        {"uri": "rows.jsonl", "media_type": "text/plain"},
        {"uri": "a/ROWS.NDJSON"},
    ],
)
def test_a_record_of_json_lines_is_a_chunk(how):
    assert told(LINES, **how) == [("$[0]", '{"a": 1}'), ("$[1]", '{"b": [1, 2, 3]}'), ("$[2]", "null")]


def test_records_are_joined_on_request():
    assert told(LINES, uri="a.jsonl", join_records=True, chunk_size=26) == [
        ("$[0]", '{"a": 1}\n\n{"b": [1, 2, 3]}'),
        ("$[2]", "null"),
    ]


def test_a_large_record_is_opened():
    assert told('{"b": [10, 20, 30]}\n', uri="a.jsonl", chunk_size=12) == [
        ("$[0].b", '{"b": [10,'),
        ("$[0].b[1]", "20, 30]}"),
    ]


def test_a_line_that_is_not_json_stays_text_and_is_counted():
    found = result('{"a": 1}\n{bad, worse\n\u0301 ]\n2', uri="a.jsonl")
    assert [chunk.text for chunk in found.chunks] == ['{"a": 1}', "{bad, worse", "\u0301 ]", "2"]
    assert found.notes == {"line that is not JSON": 2}


def test_json_lines_in_a_json_file_are_told_by_being_json_line_by_line():
    found = result(LINES, uri="a.json")
    assert len(found.chunks) == 3
    assert found.notes == {"JSON lines instead of JSON": 1}


# ----------------------------------------------------------------------------------------------------- what is no JSON


@pytest.mark.parametrize("text", ["One. Two, three.\n\nFour {", '{"a": 1,}\n{"b": 2', "{'a': 1}"])
def test_what_is_not_json_is_cut_like_prose_which_is_noted(text):
    found = result(text, chunk_size=9)
    assert found.notes == {"not JSON": 1}
    assert all(chunk.heading_path == () for chunk in found.chunks)
    check_nothing_is_lost(text, found.chunks)
