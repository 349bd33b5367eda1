"""A fingerprint names the chunks: it changes with whatever could change them, with nothing else, and keeps its word."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from transforms.chunkers import CHUNKERS, get_chunker
from transforms.chunkers.recursive import RecursiveChunker
from transforms.chunkers.skipping import SKIPPED
from transforms.errors import ChunkingError, ConfigError
from transforms.records import Block, Document, Source
from transforms.tokenizers.encodings import encoding_tokenizer

GOLDEN = Path(__file__).with_name("golden.json")


class Bytes:
    """A tokenizer of somebody's own."""

    def __init__(self, name="bytes", vocabulary_digest="0" * 64):
        self.name = name
        self.vocabulary_digest = vocabulary_digest

    def count(self, text):
        return len(text.encode())

    def count_many(self, texts):
        return [self.count(text) for text in texts]

    def boundaries(self, text):
        return [end for end, character in enumerate(text, 1) for _ in character.encode()]


def fingerprint(name, **settings):
    return get_chunker(name, **settings).fingerprint()


# ------------------------------------------------------------------------------------------------ what is the same

EQUAL = [
    ("recursive", {"chunk_overlap": 0}, {"chunk_overlap": 0.0}),
    ("recursive", {}, {"chunk_size": 512, "chunk_overlap": 0, "tokenizer": "cl100k_base"}),
    ("recursive", {"chunk_size": 512}, {"chunk_size": 512.0}),
    ("recursive", {"chunk_size": 512, "chunk_overlap": 51}, {"chunk_size": "512", "chunk_overlap": "51"}),
    ("recursive", {"chunk_size": 200, "chunk_overlap": 50}, {"chunk_overlap": 0.25, "chunk_size": 200}),
    ("recursive", {"chunk_size": 100, "chunk_overlap": 29}, {"chunk_size": 100, "chunk_overlap": 0.29}),
    ("recursive", {"chunk_size": 10, "chunk_overlap": 9}, {"chunk_size": 10, "chunk_overlap": "0.99"}),
    ("recursive", {"separators": ["\n", ["a", "b"]]}, {"separators": [["\n"], ("a", "b"), ""]}),
    ("heading", {"split_level": 3, "min_chunk_size": 1}, {"min_chunk_size": 1, "split_level": 3}),
    ("heading", {}, {"fallback": "recursive"}),
    ("heading", {"chunk_size": 99}, {"fallback": {"name": "recursive"}, "chunk_size": 99}),
    ("heading", {"chunk_size": 99}, {"chunk_size": 99, "fallback": get_chunker("recursive", chunk_size=99)}),
    ("heading_aware", {}, {"chunk_overlap": 64}),
    ("heading_aware", {"chunk_size": 100}, {"chunk_size": 100, "chunk_overlap": 0.5}),
    ("token", {}, {"tokenizer": encoding_tokenizer("cl100k_base", "tiktoken")}),
    ("token", {"tokenizer": Bytes()}, {"tokenizer": Bytes()}),
    ("recursive", {"separators": [["a", "b"]]}, {"separators": [["b", "a", "b"]]}),
    ("heading", {"min_chunk_size": 1}, {"min_chunk_size": 5}),
    (
        "heading",
        {"chunk_overlap": 9, "fallback": {"name": "token", "chunk_overlap": 4}},
        {"fallback": get_chunker("token", chunk_overlap=4)},
    ),
    (
        "heading",
        {"context": "full"},
        {"context": "full", "fallback": get_chunker("recursive", chunk_size=256)},
    ),
    ("heading", {"chunk_overlap": 9, "fallback": "whole"}, {"fallback": "whole"}),
    (
        "paper",
        {"sections": get_chunker("sentence")},
        {"chunk_overlap": 7, "sections": get_chunker("sentence")},
    ),
    (
        "paper",
        {"chunk_overlap": 7, "sections": {"name": "delimiter", "overlap_percent": 25}},
        {"sections": {"name": "delimiter", "chunk_overlap": 0.25}},
    ),
    ("table_rows", {"fallback": "token"}, {"fallback": {"name": "token", "context_in_budget": False}}),
    ("delimiter", {"chunk_size": 100, "overlap_percent": 25}, {"chunk_size": 100, "chunk_overlap": 25}),
    ("delimiter", {"delimiters": ["\n", " "]}, {"delimiters": "\n ", "drop_delimiters": True}),
    (
        "delimiter",
        {"budget": "soft", "merge": False, "chunk_overlap": 3},
        {"budget": "soft", "merge": False, "overlap_percent": 5},
    ),
    ("file_type", {"extra_skip": ["a/", "B"]}, {"extra_skip": ["b", "A/", "b", "*.lock"]}),
    ("file_type", {}, {"skip": list(SKIPPED)}),
    ("file_type", {"extra_skip": ["a/"]}, {"skip": ["a/", *SKIPPED[::-1]]}),
    ("file_type", {"skip": ["a", "b"]}, {"skip": ["b"], "extra_skip": ["a"]}),
    (
        "file_type",
        {"handler": "handlers:lines"},
        {
            "handler": "handlers:lines",
            "router": "handlers:route",
            "for_code": "token",
            "fallback_mode": "char",
        },
    ),
    ("file_type", {"handlers": {"md": "handlers:lines"}}, {"handlers": {".MD": "handlers:lines"}}),
    *((name, {"engine": "auto"}, {"engine": "tiktoken"}) for name in CHUNKERS),
]


@pytest.mark.parametrize(("name", "settings", "others"), EQUAL)
def test_equal_settings_have_one_fingerprint(name, settings, others):
    assert fingerprint(name, **settings) == fingerprint(name, **others)


def test_the_engine_is_in_no_record():
    record = get_chunker("heading", engine="tiktoken").record
    assert "engine" not in record.settings
    assert "tiktoken" not in record.settings


def test_a_fingerprint_is_sixteen_hex_digits():
    assert all(len(fingerprint(name)) == 16 and int(fingerprint(name), 16) >= 0 for name in CHUNKERS)


# --------------------------------------------------------------------------------------------------- what is another

OTHERS = {
    "rows_per_chunk": 3,
    "chunk_size": 100,
    "chunk_overlap": 7,
    "tokenizer": "o200k_base",
    "separators": ["\n"],
    "abstract_headings": ["Outline"],
    "sections": "sentence",
    "delimiters": [";"],
    "merge": False,
    "overlap_percent": 10,
    "budget": "soft",
    "drop_delimiters": True,
    "child_delimiters": ["\n"],
    "min_chunk_size": 5,
    "split_level": 4,
    "fallback": "token",
    "language": "go",
    "handler": "handlers:lines",
    "router": "handlers:route",
    "handlers": {"md": "handlers:lines"},
    "version": "2",
    "max_chunks": 70,
    "max_chars": 700,
    "min_chunk_non_ws_chars": 2,
    "k": 7,
    "fallback_mode": "line",
    "for_code": {"name": "code", "overlap_lines": 2},
    "for_json": {"name": "json", "join_records": True},
    "for_markdown": "heading",
    "for_prose": "token",
    "skip": ["vendor/"],
    "extra_skip": ["vendor/"],
    "comment_block_threshold": 4,
    "prompt_filter": True,
    "max_chunk_lines": 40,
    "overlap_lines": 3,
    "join_records": True,
    "max_lines": 12,
    "context": "full",
    "context_in_budget": True,
}


# Without these a setting says nothing.
FUNCTIONS = {"handler": "handlers:words"}
NEEDED = {
    "version": FUNCTIONS,
    "max_chunks": FUNCTIONS,
    "max_chars": FUNCTIONS,
    "min_chunk_non_ws_chars": FUNCTIONS,
    "context_in_budget": {"chunk_size": 60},
}
EVERY_SETTING = [
    (name, setting)
    for name, kind in CHUNKERS.items()
    for setting in kind.model_fields
    if setting != "engine" and (name, setting) != ("whole", "chunk_overlap")
]


@pytest.mark.parametrize(("name", "setting"), EVERY_SETTING)
def test_every_setting_changes_it(name, setting):
    needed = NEEDED.get(setting, {})
    assert fingerprint(name, **needed, **{setting: OTHERS[setting]}) != fingerprint(name, **needed)


SHOWN = [
    Document(
        "paper",
        "# A\n\n# Abstract\n\nIn short: tides. And more; of them.\n\n# Outline\n\nSo.\n\n### Deep\n\nWords follow.",
        "text/markdown",
        title="Tides",
    ),
    Document("prose", "# Long\n\n" + "Words follow. " * 90 + "\n\nThe end.", "text/markdown"),
    Document(
        "program",
        "# one\n# two\n# three\n# four\nx = 1\n\n\ndef f():\n" + "    y = 2\n\n    z = 3\n" * 30,
        "text/x-python",
    ),
    Document("rows", "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 20, "text/markdown"),
    Document("log", '{"at": "one two three four five six seven"}\n' * 8, "application/jsonl"),
    Document(
        "plain", "one two\n\nthree; four\nfive. six\n" * 12 + "\nYou are ChatGPT.\nlast", "text/x-unknown"
    ),
    Document("short", "just nine words that are not cut at all", "text/plain"),
    Document(
        "routed", "#!route token\n" + "one two three " * 20, "text/plain", source=Source(uri="a/vendor/x.md")
    ),
    Document("letters", "a b c d", "text/plain"),
    Document("ports", "港。海。空", "text/plain"),
]


# A version is the word of the user that functions have changed.
@pytest.mark.parametrize(("name", "setting"), [pair for pair in EVERY_SETTING if pair[1] != "version"])
def test_every_setting_that_changes_it_can_change_what_the_table_says(name, setting):
    needed = {"chunk_size": 150, **NEEDED.get(setting, {})}
    other = {**needed, setting: OTHERS[setting]}
    results = ([said(get_chunker(name, **each), document) for document in SHOWN] for each in (needed, other))
    assert next(results) != next(results)


def said(chunker, document):
    """What the table says of a document, but for its fingerprint."""
    try:
        result = chunker.chunk_document(document)
    except ChunkingError as error:
        return error.reason
    chunks = [chunk._replace(chunk_id="", parent_id=None) for chunk in result.chunks]
    return result.status, result.chunker.tokenizer, chunks


def test_every_strategy_has_its_own():
    same = {"chunk_size": 100, "tokenizer": "character"}
    assert len({fingerprint(name, **same) for name in CHUNKERS}) == len(CHUNKERS)


def test_a_setting_of_the_fallback_changes_it():
    changed = {"name": "recursive", "separators": ["\n"]}
    assert fingerprint("heading", fallback=changed) != fingerprint("heading")


def test_another_order_of_separators_changes_it():
    assert fingerprint("recursive", separators=["a", "b"]) != fingerprint("recursive", separators=["b", "a"])


def test_name_and_vocabulary_of_the_tokenizer_change_it():
    own = fingerprint("token", tokenizer=Bytes())
    assert fingerprint("token", tokenizer=Bytes(name="other")) != own
    assert fingerprint("token", tokenizer=Bytes(vocabulary_digest="1" * 64)) != own


@pytest.mark.parametrize("name", CHUNKERS)
def test_the_version_of_the_algorithm_changes_it(name, monkeypatch):
    before = fingerprint(name)
    monkeypatch.setattr(CHUNKERS[name], "VERSION", CHUNKERS[name].VERSION + 1)
    assert fingerprint(name) != before


def test_the_version_of_the_fallback_changes_it(monkeypatch):
    before = fingerprint("heading")
    monkeypatch.setattr(RecursiveChunker, "VERSION", RecursiveChunker.VERSION + 1)
    assert fingerprint("heading") != before


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("name", CHUNKERS)
@pytest.mark.parametrize("setting", ["chunksize", "max_tokens", "VERSION", "name", "record", "_private", ""])
def test_an_unknown_setting_is_refused_with_those_that_are_known(name, setting):
    with pytest.raises(ConfigError, match="has no such setting; it has chunk_size, chunk_overlap"):
        CHUNKERS[name](**{setting: 1})


def test_an_unknown_strategy_is_refused_with_those_that_are_known():
    with pytest.raises(ConfigError, match=r"^chunker='words': unknown strategy; known are code, delimiter, "):
        get_chunker("words")


@pytest.mark.parametrize("name", CHUNKERS)
def test_a_setting_never_changes(name):
    chunker = get_chunker(name)
    before = chunker.fingerprint()
    for setting in (*type(chunker).model_fields, "other"):
        with pytest.raises(ValidationError):
            setattr(chunker, setting, 1)
    assert chunker.fingerprint() == before == get_chunker(name).fingerprint()


@pytest.mark.parametrize(
    ("name", "setting", "settings"),
    [
        ("whole", "chunk_overlap", {"chunk_overlap": 3}),
        ("code", "overlap_lines", {"overlap_lines": 2, "chunk_overlap": 3}),
        ("delimiter", "overlap_percent", {"overlap_percent": 2, "chunk_overlap": 3}),
        ("heading", "fallback.context", {"fallback": {"name": "token", "context": "full"}}),
        ("paper", "sections.context_in_budget", {"sections": {"name": "token", "context_in_budget": True}}),
        (
            "file_type",
            "for_code.context",
            {"context": "full", "for_code": {"name": "code", "context": "none"}},
        ),
        ("file_type", "version", {"version": 2}),
        ("file_type", "max_chunks", {"max_chunks": 70}),
        ("file_type", "max_chars", {"max_chars": 70}),
        ("file_type", "min_chunk_non_ws_chars", {"min_chunk_non_ws_chars": 2}),
        ("file_type", "handlers", {"handlers": {"md": "handlers:lines", ".MD": "handlers:halves"}}),
        ("token", "tokenizer", {"tokenizer": 5}),
    ],
)
def test_a_setting_that_could_say_nothing_is_refused_by_name(name, setting, settings):
    with pytest.raises(ConfigError) as caught:
        get_chunker(name, **settings)
    assert caught.value.setting == setting


def test_what_was_given_may_change_afterwards():
    separators = [["\n"], ["a"]]
    chunker = get_chunker("recursive", separators=separators)
    separators[1].append("b")
    assert chunker.separators == (("\n",), ("a",))


# ------------------------------------------------------------------------------------------------- in other processes

SAMPLE_SETTINGS = [
    ("token", {"chunk_size": 8, "chunk_overlap": 2}),
    ("recursive", {"chunk_size": 9, "separators": ["\n", [". ", ", "]]}),
    ("heading", {"chunk_size": 10, "fallback": {"name": "token", "chunk_size": 5}}),
    ("heading_aware", {"chunk_size": 30, "chunk_overlap": 0.25}),
]
SAMPLE_TEXT = "# A\n\nOne two. Three, four; five.\n\n## B\n\nनमस्ते दुनिया। 今日は晴れ。 👍🏽👍🏽"


def report():
    """Fingerprints and ids of chunks, as JSON."""
    chunkers = [get_chunker(name, engine="tiktoken", **settings) for name, settings in SAMPLE_SETTINGS]
    document = Document("d", SAMPLE_TEXT, "text/markdown")
    return json.dumps([[c.fingerprint(), *(chunk.chunk_id for chunk in c.chunk(document))] for c in chunkers])


@pytest.mark.parametrize(("name", "settings"), SAMPLE_SETTINGS)
def test_a_pickled_chunker_is_the_same_chunker(name, settings):
    chunker = get_chunker(name, **settings)
    document = Document("d", SAMPLE_TEXT, "text/markdown")
    chunks = chunker.chunk(document)
    pickled = pickle.dumps(chunker)
    assert len(pickled) < 1000, "only settings travel, no vocabulary"
    copy = pickle.loads(pickled)
    assert copy == chunker
    assert copy.fingerprint() == chunker.fingerprint()
    assert copy.chunk(document) == chunks


def test_the_hash_seed_of_a_process_changes_nothing():
    script = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('here', {__file__!r})\n"
        "here = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(here)\n"
        "print(here.report())\n"
    )
    for seed in ("1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        process = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert process.stdout.strip() == report()


# ------------------------------------------------------------------------------------------------------ golden table


def document(name, text):
    """Blocks are what blank lines part, so that no parser has a say in the table."""
    blocks, start = [], 0
    for piece in text.split("\n\n"):
        end = start + len(piece)
        if piece.startswith("#"):
            level = len(piece) - len(piece.lstrip("#"))
            blocks.append(Block("heading", start, end, level=level, title=piece.lstrip("# ")))
        elif piece.strip():
            kind = {"|": "table", "`": "code", ">": "quote", "-": "list_item"}.get(piece[0], "paragraph")
            blocks.append(Block(kind, start, end))
        start = end + 2
    return Document(name, text, "text/markdown", blocks=tuple(blocks))


DOCUMENTS = [
    document(
        "handbook",
        "Harbour handbook, second draft.\n\n# Crossings\n\nThe ferry leaves the north quay every ten minutes, whatever "
        "the weather. Mr. Ito, the captain, has 3.5 m of draught! Is v1.2 of the plan in force?\nYes.\n\n"
        "## Winter\n\n### Ice\n\nNo crossings.\n\n## Fares\n\n| who | fare |\n|---|---|\n| adult | 12.50 |\n"
        "| child | 6.00 |\n| dog | free, if small |\n\n- Pay on board.\n\n- Keep the ticket; it is checked.\n\n"
        "```python\ndef fare(age):\n    if age < 6:\n        return 0\n\n    return 12.5\n```\n\n"
        "> A quotation, which says: nothing is free.\n\n#\n\n# Annex\n\nhttps://example.org/ferry?day=mon&from=north#17",
    ),
    document(
        "scripts",
        "渡し船は十分おきに出ます。時刻表は、港にあります。「はい！」と船長は言った。\n\n时刻表，今天是晴天；明天下雨？\n\n"
        "연락선은 십 분마다 출발합니다. 표는 배에서 삽니다.\n\nเรือข้ามฟากออกทุกสิบนาทีจากท่าเรือเหนือ\n\n"
        "هل وصلت السفينة؟ نعم، وصلت اليوم. شكرا!\n\nजहाज आया। सब खुश हैं॥ क्षत्रिय, १२३।\n\n"
        "Паром отходит. А. С. Пушкин ждёт.",
    ),
    document(
        "clusters", "👩‍👩‍👧‍👦👍🏽🇩🇪🇫🇷🇯🇵 e\u0301\u0323e\u0301 각각 नि क्षि กำ ❤️‍🔥 1️⃣ " + "👍🏿" * 9 + "🇩🇪" * 9
    ),
    document(
        "endings",
        "One line\r\nand two.\r\n \r\nThree\rfour.\r\rFive\u2028six\u00a0seven.\n\t\n\n    eight\n  ",
    ),
    document("one word", "x" * 150 + "1234567890" * 4 + "." * 70 + "\u00a0" * 20 + "end"),
    document("nothing", " \n\t\r\n\u3000"),
    Document(
        "timetable",
        '{"ferry": {"stops": [{"name": "north quay", "at": [6.1, 7.2]}, {"name": "港", "at": []}], "note": ""},\n'
        '"open": NaN, "text": "Ten minutes, whatever the weather. Then the next one leaves; so it says here."}',
        "application/json",
        blocks=(),
    ),
    Document(
        "log", '{"at": 1}\n{"at": 2, "who": "Ito"}\nno JSON at all\n[3]', "application/jsonl", blocks=()
    ),
]
SETTINGS = [
    ("token", {"chunk_size": 16}),
    ("token", {"chunk_size": 30, "chunk_overlap": 10, "tokenizer": "character"}),
    ("token", {"chunk_size": 7, "chunk_overlap": 0.5, "tokenizer": "o200k_base"}),
    ("recursive", {"chunk_size": 24}),
    ("recursive", {"chunk_size": 40, "chunk_overlap": 15, "tokenizer": "character", "min_chunk_size": 12}),
    ("recursive", {"chunk_size": 9, "chunk_overlap": 3, "separators": ["\n\n", [". ", "。", "، "], " "]}),
    ("heading", {"chunk_size": 48}),
    ("heading", {"chunk_size": 90, "split_level": 6, "min_chunk_size": 1, "tokenizer": "character"}),
    ("heading", {"chunk_size": 12, "chunk_overlap": 4, "split_level": 1, "fallback": "token"}),
    ("heading_aware", {"chunk_size": 64}),
    ("heading_aware", {"chunk_size": 20, "chunk_overlap": 8, "tokenizer": "o200k_base"}),
    ("code", {"chunk_size": 24, "chunk_overlap": 4, "language": "python"}),
    ("code", {"chunk_size": 60, "tokenizer": "character", "language": "javascript"}),
    ("code", {"chunk_size": 24, "max_chunk_lines": 3, "overlap_lines": 1}),
    ("file_type", {"chunk_size": 24, "chunk_overlap": 6, "k": 3, "fallback_mode": "line"}),
    ("file_type", {"chunk_size": 30, "handler": "handlers:halves", "version": "3"}),
    (
        "file_type",
        {"chunk_size": 60, "tokenizer": "character", "handlers": {"md": "handlers:lines"}, "skip": []},
    ),
    (
        "file_type",
        {"chunk_size": 30, "router": "handlers:route", "extra_skip": ["x/"], "prompt_filter": True},
    ),
    (
        "file_type",
        {
            "handlers": {"txt": "handlers:words"},
            "max_chunks": 50,
            "max_chars": 5000,
            "min_chunk_non_ws_chars": 2,
            "comment_block_threshold": 2,
        },
    ),
    (
        "file_type",
        {"for_code": "token", "for_json": "recursive", "for_markdown": "heading", "for_prose": "token"},
    ),
    ("json", {"chunk_size": 24}),
    ("json", {"chunk_size": 40, "chunk_overlap": 10, "tokenizer": "character", "join_records": True}),
    ("markdown", {"chunk_size": 24, "chunk_overlap": 4}),
    ("markdown", {"chunk_size": 90, "tokenizer": "character", "max_lines": 3}),
    ("heading_aware", {"chunk_size": 60, "chunk_overlap": 0, "tokenizer": "character"}),
    ("delimiter", {"chunk_size": 24, "overlap_percent": 20}),
    ("delimiter", {"chunk_size": 40, "chunk_overlap": 15, "tokenizer": "character", "budget": "soft"}),
    ("delimiter", {"chunk_size": 30, "delimiters": "\n`. `。", "drop_delimiters": True, "merge": False}),
    ("delimiter", {"chunk_size": 60, "delimiters": ["\n\n"], "child_delimiters": ["\n", ". "]}),
    ("pages", {"chunk_size": 24, "chunk_overlap": 4, "tokenizer": "o200k_base"}),
    ("paper", {"chunk_size": 40, "chunk_overlap": 8, "split_level": 3, "abstract_headings": ["Ice"]}),
    ("paper", {"chunk_size": 50, "tokenizer": "character", "sections": "sentence"}),
    ("sentence", {"chunk_size": 24}),
    ("whole", {"chunk_size": 300, "tokenizer": "character"}),
    ("sentence", {"chunk_size": 60, "chunk_overlap": 30, "tokenizer": "character"}),
    ("table_rows", {"chunk_size": 40, "rows_per_chunk": 2, "tokenizer": "character"}),
    ("table_rows", {"chunk_size": 24, "chunk_overlap": 4, "fallback": "token"}),
    *((name, {"chunk_size": 32, "context": "full", "context_in_budget": True}) for name in CHUNKERS),
]
ADD = "add it by running CHUNKMILL_UPDATE_GOLDEN=1 python -m pytest tests/chunkers/test_fingerprint.py"


def spans_of(chunker):
    return {doc.document_id: [[c.start, c.end] for c in chunker.chunk(doc)] for doc in DOCUMENTS}


def read_golden():
    return json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}


def write_golden(table):
    """One line for the chunks of a document, so that a difference can be read."""

    def entry(mark, facts):
        lines = (f"   {json.dumps(name)}: {json.dumps(found)}" for name, found in facts["spans"].items())
        spans = ",\n".join(lines)
        head = f'  "strategy": {json.dumps(facts["strategy"])},\n  "settings": {json.dumps(facts["settings"])},\n'
        return f' "{mark}": {{\n{head}  "spans": {{\n{spans}\n  }}\n }}'

    entries = (entry(mark, facts) for mark, facts in table.items())
    GOLDEN.write_text("{\n" + ",\n".join(entries) + "\n}\n", "utf-8")


def test_the_golden_table_is_updated_by_adding_only(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[__name__], "GOLDEN", tmp_path / "golden.json")
    old = {"0" * 16: {"strategy": "gone", "settings": {"a": [1]}, "spans": {"d": [[0, 1]]}}}
    write_golden(old)
    assert read_golden() == old
    known = {"strategy": "token", "settings": {}, "spans": {"handbook": [[0, 1]]}}
    mark = fingerprint("token", **SETTINGS[0][1])
    update_golden({**old, mark: known})
    assert read_golden()["0" * 16] == old["0" * 16]
    assert read_golden()[mark]["spans"]["handbook"] == [[0, 1]]
    assert len(read_golden()) == len(SETTINGS) + 1


def update_golden(table):
    for name, settings in SETTINGS:
        chunker = get_chunker(name, **settings)
        entry = {"strategy": name, "settings": settings, "spans": {}}
        known = table.setdefault(chunker.fingerprint(), entry)["spans"]
        known.update({key: found for key, found in spans_of(chunker).items() if key not in known})
    write_golden(table)


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_a_known_fingerprint_has_the_spans_it_always_had(name, settings):
    if os.environ.get("CHUNKMILL_UPDATE_GOLDEN") == "1":
        update_golden(read_golden())
    chunker = get_chunker(name, **settings)
    known = read_golden().get(chunker.fingerprint(), {"spans": {}})["spans"]
    for doc, spans in spans_of(chunker).items():
        assert doc in known, f"{name} {settings} is not in the golden table for {doc!r}: {ADD}"
        assert spans == known[doc], f"{name} cuts {doc!r} otherwise than it did: raise VERSION"


def test_the_golden_table_has_every_strategy_and_every_setting():
    assert {name for name, _ in SETTINGS} == set(CHUNKERS)
    for name in CHUNKERS:
        used = {setting for other, settings in SETTINGS if other == name for setting in settings}
        assert used == {setting for other, setting in EVERY_SETTING if other == name}


@pytest.mark.parametrize("name", CHUNKERS)
def test_no_setting_takes_a_truth_value_for_a_number(name):
    numbers = [
        key for key, field in CHUNKERS[name].model_fields.items() if field.annotation in (int, int | None)
    ]
    assert numbers
    for setting in numbers:
        with pytest.raises(ConfigError, match=rf"^{setting}=True: must be a number"):
            get_chunker(name, **{setting: True})
