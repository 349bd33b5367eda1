"""A strong cut leaves the tokens on either side as they are, so counts may be subtracted; no broken rule passes."""

from __future__ import annotations

import random
import sys
import unicodedata
from functools import lru_cache

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from soups import soup

from transforms.chunkers.rulers import ruler
from transforms.tokenizers.encodings import ENCODINGS, encoding_tokenizer
from transforms.tokenizers.strong_cuts import FAMILIES, StrongCuts, character_class, strong_cuts

# Class of a character -> some of its characters, and strings that merge with their neighbours in many ways.
SAMPLES = {
    "L": ["a", "the", "B", "ing", "é", "s", "ſ", "re", "日", "ʰ", "ß"],
    "M": ["\u0301", "\u093f", "\u20e3"],
    "N": ["1", "23", "2026", "٣", "½", "Ⅷ"],
    "S": [" ", "  "],
    "T": ["\t", "\u00a0", "\u3000", "\x0b", "\u2028", "\x85"],
    "R": ["\n", "\r", "\r\n"],
    "P": [".", "-", "(", "😀", "\u200d", "\x00", "==", "\x1c"],
    "A": ["'"],
    "X": ["/"],
    "U": ["\u0378", "\U000e0080"],
}
SCRIPTS = (
    "The quick brown fox's 3.14 jumps (over) v1.2 — https://example.org/a?b=c#d !",
    "Ünïcödé naïve Straße ĳ ŉ ǅ don't DON'T we'll",
    "Съешь ещё этих мягких булок, 2026 г.",
    "هل وصلت السفينة؟ نعم ٣٤ وصلت۔",
    "שלום עולם, מה שלומך?",
    "जहाज आया। सब खुश हैं॥ क्षत्रिय १२३",
    "เรือข้ามฟากออกทุกสิบนาที ๓๔",
    "ទូកឆ្លងទន្លេចេញរៀងរាល់ម៉ោង",
    "渡し船は十分おきに出ます。　時刻表、カタカナ",
    "时刻表，今天是晴天！",
    "연락선은 십 분마다 출발합니다",
    "👍🏽 👩‍👩‍👧‍👦 🇩🇪🇫🇷 e\u0301\u0323 ❤️",
    "\tcode {\r\n    x = 'a' / b;\n}\n\n\n",
    "\u00a0\u3000\u2028 \x00\x1c\x85\u200b\ufeff",
)
ENCODING_NAMES = ("cl100k_base", "o200k_base")
FAMILY_OF = {"cl100k_base": "cl100k", "o200k_base": "o200k", "r50k_base": "r50k"}
SOUP = soup([*(piece for pieces in SAMPLES.values() for piece in pieces), *SCRIPTS], max_size=30)
WORDS = soup(" ".join(SCRIPTS).split(" "), max_size=30, between=" ")
TEXTS = st.one_of(SOUP, WORDS, st.text(max_size=80))


def cuts(strong, text):
    """Every strong cut inside a text."""
    return [position for position in range(1, len(text)) if strong.at(text, position)]


def tokens(encoding, text):
    return encoding_tokenizer(encoding, "tiktoken").encode(text).tolist()


@lru_cache(1 << 17)
def pieces(encoding, text):
    """Ends of the pieces that an encoding's pattern makes: no merge crosses one. Needs no vocabulary."""
    pattern = ENCODINGS[encoding].pattern.replace("$", r"\Z")
    return tuple(match.end() for match in regex.finditer(pattern, text))


def splits_pieces(encoding, text, cut):
    joined = [*pieces(encoding, text[:cut]), *(cut + end for end in pieces(encoding, text[cut:]))]
    return joined != list(pieces(encoding, text))


def splits_tokens(encoding, text, cut):
    return tokens(encoding, text[:cut]) + tokens(encoding, text[cut:]) != tokens(encoding, text)


@lru_cache
def fixed_sample():
    random_ = random.Random(20)
    texts = {
        "".join(random_.choice(random_.choice(list(SAMPLES.values()))) for _ in range(length))
        for length in (2, 3, 3, 4)
        for _ in range(1200)
    }
    # Each pair of classes, alone and after white space and black.
    for left in SAMPLES.values():
        for right in SAMPLES.values():
            texts |= {before + left[0] + right[0] for before in ("", " ", "\n", "a", ".")}
    return sorted(texts | {"don't", "आया", "क\u093f", "को", "में"})


@lru_cache
def wrong_places(encoding, oracle):
    """Each text of the sample with the places where cutting it changes something."""
    return [
        (text, {cut for cut in range(1, len(text)) if oracle(encoding, text, cut)}) for text in fixed_sample()
    ]


def is_caught(strong, encoding, oracle):
    return any(not wrong.isdisjoint(cuts(strong, text)) for text, wrong in wrong_places(encoding, oracle))


def with_rule(encoding, rule):
    return StrongCuts([*FAMILIES[FAMILY_OF[encoding]], rule])


# ------------------------------------------------------------------------------------------------- soundness


@pytest.mark.parametrize("encoding", ENCODING_NAMES)
def test_tokens_of_a_text_are_those_of_the_two_sides_of_any_strong_cut(encoding):
    strong = strong_cuts(encoding)

    @given(TEXTS)
    def sides_add_up(text):
        whole = tokens(encoding, text)
        for cut in cuts(strong, text):
            assert tokens(encoding, text[:cut]) + tokens(encoding, text[cut:]) == whole, (text, cut)

    sides_add_up()


@pytest.mark.parametrize("encoding", ENCODING_NAMES)
def test_a_strong_cut_is_the_end_of_a_token(encoding):
    strong, tokenizer = strong_cuts(encoding), encoding_tokenizer(encoding)

    @given(TEXTS)
    def ends_a_token(text):
        assert {*cuts(strong, text)} <= {*map(int, tokenizer.boundaries(text))}

    ends_a_token()


@pytest.mark.parametrize("encoding", ENCODING_NAMES)
def test_the_ruler_counts_every_slice_as_the_tokenizer_does(encoding):
    tokenizer = encoding_tokenizer(encoding)

    @given(TEXTS, st.randoms(use_true_random=True))
    def same_counts(text, random_):
        first = len(text) - len(text.lstrip())
        start, end = random_.choice([(0, len(text)), (min(first, len(text.rstrip())), len(text.rstrip()))])
        measured = ruler(text, tokenizer, [(start, end)])
        for _ in range(20):
            start, end = sorted((random_.randint(0, len(text)), random_.randint(0, len(text))))
            assert measured.count(start, end) == tokenizer.count(text[start:end]), (start, end)

    same_counts()


@pytest.mark.parametrize("encoding", ENCODING_NAMES)
def test_the_ruler_counts_slices_whose_cuts_are_out_of_reach(encoding):
    tokenizer = encoding_tokenizer(encoding)
    far_apart = ["a" * 700, "." * 700, " " * 700, "7" * 700, "\n" * 700, "é" * 300, "日" * 300, "👍🏽" * 90]
    text = " x ".join(far_apart) + "\n".join(far_apart)
    measured, random_ = ruler(text, tokenizer, [(0, len(text))]), random.Random(5)
    for _ in range(1500):
        start = random_.randint(0, len(text))
        end = min(len(text), start + random_.choice((3, 200, 257, 600, 2000)))
        assert measured.count(start, end) == tokenizer.count(text[start:end]), (start, end)


@pytest.mark.parametrize("encoding", ENCODING_NAMES)
def test_every_kind_of_code_point_is_in_the_right_class(encoding):
    strong, random_ = strong_cuts(encoding), random.Random(encoding)
    neighbours = [samples[0] for samples in SAMPLES.values()]
    code_points = [*range(0x300), *range(0x300, 0x3100, 5), *range(0x3100, sys.maxunicode + 1, 331)]
    categories = set()
    for code_point in code_points:
        character = chr(code_point)
        if 0xD800 <= code_point < 0xE000:
            continue
        categories.add(unicodedata.category(character))
        for _ in range(3):
            before, after = random_.choice(neighbours), random_.choice(neighbours)
            for text in (before + character + after, character + before + after, before + after + character):
                for cut in cuts(strong, text):
                    assert not splits_tokens(encoding, text, cut), (text, cut)
    assert categories >= {*"Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Zs Cc Cf Cn".split()}


def test_an_unassigned_code_point_is_beside_no_strong_cut():
    for encoding in FAMILY_OF:
        for neighbour in (piece for pieces in SAMPLES.values() for piece in pieces):
            assert 1 not in cuts(strong_cuts(encoding), "\u0378" + neighbour)
            assert len(neighbour) not in cuts(strong_cuts(encoding), neighbour + "\u0378")


def test_an_encoding_without_a_proof_has_no_strong_cuts():
    assert strong_cuts("some_new_base") is None
    assert strong_cuts("character") is None


@pytest.mark.parametrize(
    ("encoding", "twin"),
    [("o200k_harmony", "o200k_base"), ("p50k_base", "r50k_base"), ("p50k_edit", "r50k_base")],
)
def test_encodings_with_one_pattern_have_the_same_strong_cuts(encoding, twin):
    assert ENCODINGS[encoding].pattern == ENCODINGS[twin].pattern
    for text in fixed_sample()[::5]:
        assert cuts(strong_cuts(encoding), text) == cuts(strong_cuts(twin), text)


# ------------------------------------------------------------------------------------------------ no rule less


def test_every_class_has_its_characters():
    for name, samples in SAMPLES.items():
        assert {character_class(character) for piece in samples for character in piece} == {name}
    assert {character_class(chr(c)) for c in range(sys.maxunicode + 1)} == set(SAMPLES)


@pytest.mark.parametrize("encoding", FAMILY_OF)
def test_the_rules_are_all_that_the_pattern_allows_and_no_more(encoding):
    """A cut between two classes is strong always, only after black, or never: as the sample shows."""
    wrong = {}
    for text, places in wrong_places(encoding, splits_pieces):
        for cut in range(1, len(text)):
            pair = character_class(text[cut - 1]), character_class(text[cut])
            after_white = cut > 1 and character_class(text[cut - 2]) in "STR"
            wrong.setdefault(pair, set()).update({after_white} if cut in places else set())
    assert len(wrong) == len(SAMPLES) ** 2
    strong = strong_cuts(encoding)
    for (left, right), after_white in wrong.items():
        pair = SAMPLES[left][0][0] + SAMPLES[right][0][0]
        assigned = "U" not in left + right
        assert strong.at("a" + pair, 2) == (assigned and False not in after_white), pair
        assert strong.at(" " + pair, 2) == (assigned and not after_white), pair


# --------------------------------------------------------------------------------------------- broken rules

BROKEN = {
    "cl100k_base": "P:R S:L L:L N:N S:P T:L R:R R:T S:T P:L P:P T:R A:L X:R".split(),
    "o200k_base": "P:R S:L L:L N:N S:P T:L R:R R:T S:T P:L P:P L:M L:A R:X M:L A:L X:R T:R T:M".split(),
}


@pytest.mark.parametrize("encoding", ENCODING_NAMES)
def test_no_rule_is_caught_by_the_tokens_of_the_sample(encoding):
    assert not is_caught(strong_cuts(encoding), encoding, splits_tokens)


@pytest.mark.parametrize(("encoding", "rule"), [(name, rule) for name in BROKEN for rule in BROKEN[name]])
def test_a_broken_rule_is_caught_by_the_tokens_of_the_sample(encoding, rule):
    assert is_caught(with_rule(encoding, rule), encoding, splits_tokens)


@pytest.mark.parametrize("encoding", ENCODING_NAMES)
@pytest.mark.parametrize("rule", ["S:N", "T:N", "T:P"])
def test_a_rule_that_forgets_the_white_space_before_is_caught(encoding, rule):
    assert is_caught(with_rule(encoding, rule), encoding, splits_tokens)
