"""tiktoken's encodings, from embedded vocabularies: its own digests, patterns and ids, whatever engine encodes."""

from __future__ import annotations

import base64
import hashlib
import socket
import sys
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate

import numpy as np
import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from soups import soup
from tiktoken_ext import openai_public

from transforms.chunkers import get_chunker
from transforms.errors import ConfigError
from transforms.tokenizers import Tokenizer, encodings, get_tokenizer, identity_of
from transforms.tokenizers.encodings import ENCODINGS, EncodingTokenizer, encoding_tokenizer
from transforms.tokenizers.self_check import SAMPLE

EMBEDDED = ("cl100k_base", "o200k_base")
URLS = {"cl100k_base.tiktoken": "cl100k_base", "o200k_base.tiktoken": "o200k_base"}
LOOK_ALIKES = tuple("<|endoftext|> <|fim_prefix|> <|endofprompt|> <|im_start|> <|start|> [CLS] <s>".split())
SCRIPTS = (
    "The quick brown fox's 3.14 jumps — v1.2, https://example.org/a?b=c#d!",
    "Ünïcödé naïve STRASSE ŉ ǅ DON'T ſ's WE'LL",
    "Съешь ещё этих мягких булок, 2026 г.",
    "هل وصلت السفينة؟ نعم ٣٤ وصلت۔",
    "שלום עולם, מה שלומך?",
    "जहाज आया। सब खुश हैं॥ क्षत्रिय १२३",
    "เรือข้ามฟากออกทุกสิบนาที",
    "ទូកឆ្លងទន្លេចេញរៀងរាល់ម៉ោង",
    "渡し船は十分おきに出ます。　時刻表",
    "时刻表，今天是晴天！",
    "연락선은 십 분마다 출발합니다",
    "👍🏽 👩‍👩‍👧‍👦 🇩🇪🇫🇷 e\u0301\u0323",
    "def f(x):\r\n\treturn {'a': x}\r\n\n\n",
)
HOSTILE = (
    "",
    "\x00\x01\x1c\x85\ufeff\ufffe\U0010ffff",
    "\u0378\U000e0080\u200b\u2060",
    " " * 20_000,
    "\n" * 20_000,
    " \n" * 10_000,
    "a" * 5_000,
    "aB" * 3_000,
    "9" * 5_000,
    "." * 5_000,
    "'" * 3_000,
    "/" * 3_000,
    "日" * 3_000,
    "e\u0301" * 3_000,
    "👩‍👩‍👧‍👦" * 400,
    "".join(LOOK_ALIKES) * 50,
    "\t".join(SCRIPTS) + "  ",
    "\n\n".join(SCRIPTS) + "\r\n",
)
TEXTS = st.one_of(
    soup([*" ".join((*SCRIPTS, *LOOK_ALIKES)).split(" "), "\n", " ", "\r\n"], between=" "),
    st.text(max_size=100),
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Nothing here may open a socket."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@lru_cache
def vocabulary(name):
    return encodings._vocabulary(name)


def load(name, engine="auto"):
    """A tokenizer that no other test has."""
    return encoding_tokenizer.__wrapped__(name, engine)


@lru_cache
def plain_tiktoken(name):
    """What `tiktoken.get_encoding` would build, with its special tokens, from the embedded ranks."""
    url_of_ranks = ENCODINGS[name].url
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            openai_public, "load_tiktoken_bpe", lambda url, expected_hash: ranks_at(url, url_of_ranks)
        )
        return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


def ranks_at(url, expected):
    assert url == expected
    lines = vocabulary(URLS[url.rpartition("/")[2]]).splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


# ---------------------------------------------------------------------------------------------- the vocabularies


@pytest.mark.parametrize("name", ENCODINGS)
def test_pattern_address_and_digest_are_those_that_tiktoken_pins(name, monkeypatch):
    asked = []
    monkeypatch.setattr(
        openai_public, "load_tiktoken_bpe", lambda *args, **named: asked.append((args, named)) or {}
    )
    definition = openai_public.ENCODING_CONSTRUCTORS[name]()
    encoding = ENCODINGS[name]
    assert encoding.pattern == definition["pat_str"]
    assert asked == [((encoding.url,), {"expected_hash": encoding.sha256})]


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_vocabulary_has_the_digest_that_tiktoken_pins(name):
    assert hashlib.sha256(vocabulary(name)).hexdigest() == ENCODINGS[name].sha256
    assert get_tokenizer(name).vocabulary_digest == ENCODINGS[name].sha256


def test_an_embedded_vocabulary_that_was_tampered_with_is_refused(monkeypatch):
    lines = vocabulary("cl100k_base")
    monkeypatch.setattr(encodings, "_unpack", lambda _: lines.replace(b" 700\n", b" 701\n"))
    with pytest.raises(ConfigError, match=r"cl100k_base.*vocabulary has SHA-256"):
        load("cl100k_base")


def test_the_identity_of_an_encoding_needs_no_vocabulary(monkeypatch):
    monkeypatch.setattr(encodings, "_vocabulary", None)
    assert identity_of("cl100k_base") == ("cl100k_base", ENCODINGS["cl100k_base"].sha256)
    assert identity_of("p50k_base") == ("p50k_base", ENCODINGS["p50k_base"].sha256)


# ---------------------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize("name", [*EMBEDDED, "o200k_harmony"])
@pytest.mark.parametrize("engine", ["auto", "tiktoken"])
def test_ids_are_those_of_plain_tiktoken(name, engine):
    tokenizer, plain = encoding_tokenizer(name, engine), plain_tiktoken(name)
    for text in (*SCRIPTS, *HOSTILE, *SAMPLE):
        assert tokenizer.encode(text).tolist() == plain.encode_ordinary(text)
        assert tokenizer.count(text) == len(plain.encode_ordinary(text))


@pytest.mark.parametrize("name", EMBEDDED)
def test_ids_of_any_text_are_the_same_for_every_engine(name):
    plain = plain_tiktoken(name)

    @given(TEXTS)
    def same_ids(text):
        expected = plain.encode_ordinary(text)
        assert encoding_tokenizer(name, "auto").encode(text).tolist() == expected
        assert encoding_tokenizer(name, "tiktoken").encode(text).tolist() == expected

    same_ids()


@pytest.mark.parametrize("name", EMBEDDED)
def test_boundaries_are_the_ends_of_the_tokens_in_code_points(name):
    tokenizer, plain = encoding_tokenizer(name), plain_tiktoken(name)

    @given(TEXTS)
    def ends(text):
        # A token that ends inside a character counts to the end of that character.
        of_byte = [place for place, character in enumerate(text, 1) for _ in character.encode()]
        lengths = map(len, plain.decode_tokens_bytes(plain.encode_ordinary(text)))
        expected = [of_byte[end - 1] for end in accumulate(lengths)]
        assert list(tokenizer.boundaries(text)) == expected
        assert len(expected) == tokenizer.count(text)

    ends()


def test_what_looks_like_a_special_token_is_ordinary_text():
    for name in (*EMBEDDED, "o200k_harmony"):
        tokenizer = get_tokenizer(name)
        for look_alike in LOOK_ALIKES:
            assert tokenizer.count(look_alike) > 1
            assert tokenizer.count(f"a {look_alike} b") > 3


def test_many_texts_are_counted_as_each_alone():
    for name in (*EMBEDDED, "character"):
        tokenizer = get_tokenizer(name)
        assert tokenizer.count_many(SCRIPTS) == [tokenizer.count(text) for text in SCRIPTS]
        assert tokenizer.count_many([]) == []


def test_counts_stay_right_when_more_short_texts_come_than_are_remembered(monkeypatch):
    monkeypatch.setattr(encodings, "_REMEMBERED_COUNTS", 10)
    tokenizer = EncodingTokenizer("cl100k_base", vocabulary("cl100k_base"), "tiktoken")
    texts = [f"text {number}" for number in range(50)] * 2
    assert [tokenizer.count(text) for text in texts] == [len(tokenizer.encode(text)) for text in texts]
    assert len(tokenizer.known_counts) <= 10


def test_the_counter_of_characters_counts_code_points():
    tokenizer = get_tokenizer("character")
    for text in (*SCRIPTS, "", "👩‍👩‍👧‍👦", "e\u0301"):
        assert tokenizer.count(text) == len(text)
        assert list(tokenizer.boundaries(text)) == list(range(1, len(text) + 1))


@pytest.mark.parametrize("name", ["character", *EMBEDDED])
def test_every_tokenizer_follows_the_protocol(name):
    assert isinstance(get_tokenizer(name), Tokenizer)
    assert get_tokenizer(name) is get_tokenizer(name)


# ------------------------------------------------------------------------------------------------- the fast engine


class FastEngine:
    """An engine with tiktoken's ids, which lies about texts that hold `lie`."""

    lie = None

    def encode_batch_flat(self, texts):
        ids = np.array(plain_tiktoken("cl100k_base").encode_ordinary(texts[0]), np.uint32)
        if self.lie is not None and self.lie in texts[0]:
            ids = ids[::-1]
        return ids.tobytes(), [len(ids)]


@pytest.fixture
def engine(monkeypatch):
    engine = FastEngine()
    monkeypatch.setattr(encodings, "_fastokens", lambda name, vocabulary: engine)
    return engine


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_fast_engine_is_in_use_where_it_is_installed(name):
    pytest.importorskip("fastokens")
    tokenizer = encoding_tokenizer(name, "auto")
    assert (tokenizer.engine, tokenizer.fallback) == ("fastokens", None)
    assert encoding_tokenizer(name, "tiktoken").engine == "tiktoken"


def test_an_honest_engine_is_in_use_where_it_is_demanded(engine):
    assert load("cl100k_base", "fastokens").engine == "fastokens"


def test_an_engine_that_lies_is_dropped_when_it_is_loaded(engine):
    engine.lie = "जहाज"
    tokenizer = load("cl100k_base")
    assert tokenizer.engine == "tiktoken"
    assert tokenizer.fallback == "fastokens differs from tiktoken on the self-check"
    assert tokenizer.encode("जहाज आया").tolist() == plain_tiktoken("cl100k_base").encode_ordinary("जहाज आया")


def test_an_engine_that_lies_is_refused_where_it_is_demanded(engine):
    engine.lie = "जहाज"
    with pytest.raises(ConfigError, match="engine='fastokens': fastokens differs from tiktoken"):
        load("cl100k_base", "fastokens")


def test_an_engine_that_begins_to_lie_is_dropped_within_a_thousand_documents(engine):
    tokenizer = load("cl100k_base")
    assert tokenizer.engine == "fastokens"
    engine.lie = "later"
    text = "An engine may lie only later, on a text of its own choice."
    ids = [tokenizer.encode(text).tolist() for _ in range(1001)]
    assert tokenizer.engine == "tiktoken"
    assert tokenizer.fallback == f"fastokens differs from tiktoken on a document of {len(text)} characters"
    assert ids[-1] == plain_tiktoken("cl100k_base").encode_ordinary(text)
    # What the check itself saw was right already.
    wrong = next(place for place, found in enumerate(ids) if found == ids[-1])
    assert wrong < 1000
    assert all(found == ids[-1] for found in ids[wrong:])


def test_an_honest_engine_is_checked_once_in_a_thousand_documents(engine, monkeypatch):
    tokenizer = load("cl100k_base")
    checked = []
    reference = tokenizer._encode_reference
    monkeypatch.setattr(tokenizer, "_encode_reference", lambda text: checked.append(text) or reference(text))
    for number in range(2000):
        tokenizer.encode(f"document {number}")
    assert len(checked) == 2
    assert tokenizer.engine == "fastokens"


def test_without_the_fast_engine_tiktoken_encodes(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastokens", None)
    tokenizer = load("cl100k_base")
    assert tokenizer.engine == "tiktoken"
    assert tokenizer.fallback == "fastokens is not installed (pip install 'chunkmill[fast]')"
    with pytest.raises(ConfigError, match="is not installed"):
        load("cl100k_base", "fastokens")


def test_an_encoding_that_the_fast_engine_does_not_know_is_encoded_by_tiktoken():
    tokenizer = load("o200k_harmony")
    assert (tokenizer.engine, tokenizer.fallback) == ("tiktoken", "fastokens does not cover o200k_harmony")


# -------------------------------------------------------------------------------------- vocabularies from elsewhere


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return lambda name: tmp_path / hashlib.sha1(ENCODINGS[name].url.encode()).hexdigest()


@pytest.mark.parametrize("name", ["p50k_base", "p50k_edit", "r50k_base"])
def test_an_encoding_that_is_not_at_hand_is_refused_with_a_way_out(name, cache):
    with pytest.raises(ConfigError, match="nothing is downloaded") as refused:
        get_tokenizer(name)
    assert str(refused.value).startswith(f"tokenizer={name!r}: ")
    assert f"{name[:4]}_base.tiktoken file" in str(refused.value)
    assert f"TIKTOKEN_CACHE_DIR, here {cache(name).parent}" in str(refused.value)


def test_a_vocabulary_in_the_cache_of_tiktoken_is_used(cache, monkeypatch):
    # The vocabulary of p50k is not at hand, so another one stands in for it under a digest of its own.
    lines = vocabulary("cl100k_base")
    digest = hashlib.sha256(lines).hexdigest()
    monkeypatch.setitem(ENCODINGS, "p50k_base", replace(ENCODINGS["p50k_base"], sha256=digest))
    cache("p50k_base").write_bytes(lines)
    tokenizer = load("p50k_base")
    assert (tokenizer.name, tokenizer.vocabulary_digest) == ("p50k_base", digest)
    assert tokenizer.count("Hello world") == 2


def test_a_tampered_vocabulary_in_the_cache_is_refused_and_left_alone(cache):
    cache("p50k_base").write_bytes(b"IQ== 0\n")
    with pytest.raises(ConfigError, match=r"p50k_base.*vocabulary has SHA-256 .* not 94b5ca7d"):
        get_tokenizer("p50k_base")
    assert cache("p50k_base").exists()


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_tiktoken_file_is_the_encoding_of_its_vocabulary(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastokens", None)  # which takes seconds to load
    path = tmp_path / "ranks.tiktoken"
    path.write_bytes(vocabulary(name))
    by_path, by_name = get_chunker("token", tokenizer=str(path)), get_chunker("token", tokenizer=name)
    assert by_path.counter.name == name
    assert by_path.counter.count(SCRIPTS[0]) == by_name.counter.count(SCRIPTS[0])
    assert by_path.fingerprint() == by_name.fingerprint()


def test_a_tiktoken_file_of_no_known_encoding_is_refused(tmp_path):
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(b"IQ== 0\n")
    with pytest.raises(ConfigError, match="no encoding of tiktoken has a vocabulary with SHA-256"):
        get_tokenizer(str(path))


def test_a_missing_tiktoken_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"tokenizer='.*none\.tiktoken': cannot be read"):
        get_tokenizer(str(tmp_path / "none.tiktoken"))


@pytest.mark.parametrize("name", ["", "cl100k", "gpt-4o", "words"])
def test_an_unknown_tokenizer_is_refused_with_those_that_are_known(name):
    with pytest.raises(ConfigError, match=r"unknown; known are character, cl100k_base, .* tokenizer\.json"):
        get_tokenizer(name)


@pytest.mark.parametrize("name", [*EMBEDDED, "o200k_harmony"])
def test_every_embedded_vocabulary_loads_without_a_network(name):
    assert load(name, "tiktoken").count("no network") > 1
