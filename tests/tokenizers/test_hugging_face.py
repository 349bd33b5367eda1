"""A Hugging Face tokenizer.json counts text as it is, and is the same tokenizer wherever its file lies."""

from __future__ import annotations

import json
import sys

import pytest
import regex

from transforms.chunkers import CHUNKERS, get_chunker
from transforms.errors import ConfigError
from transforms.records import Document
from transforms.tokenizers import Tokenizer, get_tokenizer

tokenizers = pytest.importorskip("tokenizers")

LINES = (
    "The ferry leaves the north quay every ten minutes.",
    "Die Fähre legt alle zehn Minuten ab, naïve Straße.",
    "渡し船は十分おきに出ます。",
    "जहाज आया। सब खुश हैं।",
    "👍🏽 👩‍👩‍👧‍👦 e\u0301",
)
TEXTS = (
    *LINES,
    "",
    " ",
    "\n\n  x\t",
    " ".join(LINES) * 3,
    "a <s> b </s> [MASK] <|endoftext|>",
    "<unk>\x00\u0378",
)


@pytest.fixture(scope="module")
def definition():
    """A small byte-level BPE that truncates, pads, adds `<s>` and `</s>`, and knows special tokens."""
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<s>", "</s>", "[MASK]", "<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(LINES * 3, trainer)
    model.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    model.enable_truncation(8)
    model.enable_padding(length=16)
    return model.to_str()


@pytest.fixture
def path(definition, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(definition, "utf-8")
    return str(path)


def pieces(path, text):
    """The tokens of a text as the text they stand for."""
    tokenizer, start, found = get_tokenizer(path), 0, []
    for end in tokenizer.boundaries(text):
        found.append(text[start:end])
        start = int(end)
    return found


def test_it_follows_the_protocol(path):
    tokenizer = get_tokenizer(path)
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.name == "hf:tokenizer.json"
    assert get_tokenizer(path) is tokenizer


def test_a_text_is_counted_without_what_the_file_would_add_cut_off_or_pad(path):
    tokenizer = get_tokenizer(path)
    assert tokenizer.count("") == 0
    assert tokenizer.count("a") == 1
    assert tokenizer.count("q" * 50) == 50
    assert tokenizer.count_many(TEXTS) == [tokenizer.count(text) for text in TEXTS]
    assert tokenizer.count_many([]) == []


def test_learned_words_are_one_token(path):
    assert pieces(path, "The ferry leaves") == ["The", " ferry", " leaves"]


@pytest.mark.parametrize("text", TEXTS)
def test_boundaries_ascend_to_the_end_one_for_each_token(path, text):
    tokenizer = get_tokenizer(path)
    ends = list(tokenizer.boundaries(text))
    assert ends == sorted(ends)
    assert len(ends) == tokenizer.count(text)
    assert not ends or ends[-1] == len(text)


@pytest.mark.parametrize("special", ["<s>", "</s>", "[MASK]", "<|endoftext|>"])
def test_a_special_token_in_the_text_is_ordinary_text(path, special):
    tokenizer = get_tokenizer(path)
    assert tokenizer.count(special) > 1
    assert "".join(pieces(path, f"a {special} b")) == f"a {special} b"
    assert special not in pieces(path, f"a {special} b")


@pytest.mark.parametrize("name", CHUNKERS)
def test_every_strategy_keeps_the_budget_of_such_a_tokenizer(path, name):
    chunker = get_chunker(name, chunk_size=8, chunk_overlap=0 if name == "whole" else 2, tokenizer=path)
    for text in TEXTS:
        chunks = chunker.chunk(Document("d", text))
        assert all(chunk.token_count == chunker.counter.count(chunk.text) for chunk in chunks)
        assert all(
            chunk.token_count <= 8 or regex.fullmatch(r"\X", chunk.text) or name == "whole"
            for chunk in chunks
        )
        held = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
        assert all(character.isspace() or place in held for place, character in enumerate(text))


def test_one_file_at_two_places_is_one_tokenizer_to_the_fingerprint(path, definition, tmp_path):
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "tokenizer.json"
    copy.write_text(definition, "utf-8")
    chunkers = [get_chunker("token", tokenizer=name) for name in (path, str(copy), f"file://{copy}")]
    assert len({chunker.fingerprint() for chunker in chunkers}) == 1


def test_another_vocabulary_is_another_fingerprint(path, definition, tmp_path):
    changed = json.loads(definition)
    changed["model"]["merges"].pop()
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "tokenizer.json"
    other.write_text(json.dumps(changed), "utf-8")
    mine, others = (get_chunker("token", tokenizer=name) for name in (path, str(other)))
    assert mine.fingerprint() != others.fingerprint()


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"tokenizer='.*none\.json': cannot be read"):
        get_tokenizer(str(tmp_path / "none.json"))


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ConfigError, match=r"tokenizer='.*folder\.json': cannot be read"):
        get_tokenizer(str(tmp_path / "folder.json"))


def test_a_store_that_nobody_knows_is_refused_under_the_name_of_the_setting():
    with pytest.raises(ConfigError, match=r"tokenizer='nowhere://t\.json': unknown scheme"):
        get_tokenizer("nowhere://t.json")


@pytest.mark.parametrize("content", ["", "{}", "[1]", "not JSON", '{"model": null}'])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"is not a tokenizer\.json"):
        get_tokenizer(str(path))


def test_a_bad_file_is_refused_when_the_chunker_is_made(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        get_chunker("token", tokenizer=str(tmp_path / "none.json"))


def test_without_the_package_it_says_what_to_install(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match=r"needs pip install 'chunkmill\[hf\]'"):
        get_tokenizer(path)
