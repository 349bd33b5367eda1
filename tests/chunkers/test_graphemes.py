r"""Cluster edges are those of `\X` over the whole text, found at a cost that grows with the text only."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from soups import soup

from transforms.chunkers import graphemes
from transforms.chunkers.graphemes import Graphemes

PIECES = (
    *("a", "é", "e\u0301", "日", "ก", "ำ", " ", "\t", "!", "\x00", "\u0378"),
    *("\r", "\n", "\r\n", "\x85", "\u2028"),
    *("\u0301", "\u0323", "\u20e3", "\u200d", "\ufe0f", "\u200b", "\u00ad", "\U000e0020"),
    # Emoji: with a skin tone, joined, keycaps, a flag of tags.
    *("👍", "👍🏽", "👩‍👩‍👧‍👦", "❤️", "❤️‍🔥", "1️⃣", "©", "🏴\U000e0067\U000e0062\U000e007f", "🏽"),
    *("🇩", "🇪", "🇩🇪🇫🇷", "🇩\u200d"),
    # Hangul: leading consonants, vowels, trailing consonants, whole syllables.
    *("ᄀ", "ᄁ", "ᅡ", "ᅢ", "ᆨ", "ᆩ", "가", "각", "\ua960", "\ud7b0", "\ud7cb"),
    # Indic conjuncts: consonant, virama, consonant; with nukta and vowel signs.
    *("क", "क्ष", "\u094d", "\u093f", "\u093c", "र्", "ক", "\u09cd", "ക", "\u0d4d", "க", "\u0bcd", "\u0bbf"),
    *("ទ", "\u17d2", "\u17c1", "က", "\u1039", "\u1031"),
    # Prepended characters.
    *("\u0600", "\u06dd", "\u070f", "\u0d4e", "\U000110bd", "\U00011a3f"),
)
TEXTS = st.one_of(soup(PIECES, max_size=30), st.text(max_size=40))


def edges_of(text):
    return [0, *(match.end() for match in regex.finditer(r"\X", text))]


def check(text, positions):
    found, edges = Graphemes(text), edges_of(text)
    for position in positions:
        assert found.floor(position) == edges[bisect_right(edges, position) - 1], position
        assert found.ceil(position) == edges[bisect_left(edges, position)], position
        assert found.is_edge(position) == (position in edges), position


@given(TEXTS, st.randoms(use_true_random=True))
@example("", None)
@example("\r\n", None)
@example("a" + "🇩🇪" * 3 + "🇫", None)
@example("👩\u200d👩\u200d" * 3, None)
@example("क\u094d\u200d\u094dष\u094d", None)
@example("a\u094dक", None)
@example("\u1039🏽क", None)
@example("\u0600\u0600\r\n\u0301", None)
@example("ᄀ가ᅡᆨᆨᄀ", None)
def test_edges_are_those_of_the_whole_text_asked_in_any_order(text, random_):
    check(text, range(len(text) + 1))
    check(text, range(len(text), -1, -1))
    if random_:
        check(text, [random_.randint(0, len(text)) for _ in range(40)])


@pytest.mark.parametrize(
    "code_points", [(0, 0x3100), (0xA000, 0xD800), (0xE000, 0x12000), (0x1F000, 0x1FB00)]
)
def test_every_character_meets_its_neighbours_as_in_the_standard(code_points):
    before = ("a", "क\u094d", "👩\u200d", "\u0600", "ᄀ", "🇩")
    after = ("\u0301", "ष", "👩", "ᅡ", "🇪", "\n")
    for place, code_point in enumerate(range(*code_points)):
        text = before[place % 6] + chr(code_point) + after[place // 6 % 6]
        check(text, range(len(text) + 1))


CLUSTERS = {
    "a family": "👩‍👩‍👧‍👦",
    "a skin tone": "👍🏽",
    "a flag": "🇩🇪",
    "a keycap": "1️⃣",
    "a letter with two marks": "e\u0301\u0323",
    "a syllable of jamo": "ᄀ\u1161\u11a8",
    "a conjunct": "क्ष",
    "a vowel sign": "नि",
    "a prepended number sign": "\u06001",
    "CRLF": "\r\n",
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_nothing_cuts(name):
    cluster = CLUSTERS[name]
    text = f"x {cluster} y{cluster}"
    found = Graphemes(text)
    for start in (2, len(text) - len(cluster)):
        for position in range(start + 1, start + len(cluster)):
            assert not found.is_edge(position)
            assert found.floor(position) == start
            assert found.ceil(position) == start + len(cluster)


# ------------------------------------------------------------------------------------------------------ cost


class CountingPattern:
    """The cluster pattern, counting what is asked of it and the characters it is given."""

    def __init__(self):
        self.pattern = graphemes._CLUSTER
        self.calls = self.characters = 0

    def finditer(self, text, start, end):
        self.calls += 1
        self.characters += end - start
        return self.pattern.finditer(text, start, end)

    def findall(self, text):
        self.calls += 1
        self.characters += len(text)
        return self.pattern.findall(text)


@pytest.fixture
def pattern(monkeypatch):
    pattern = CountingPattern()
    monkeypatch.setattr(graphemes, "_CLUSTER", pattern)
    graphemes._edge_between.cache_clear()
    return pattern


HOSTILE = {
    "combining marks": "\u0301",
    "regional indicators": "🇩",
    "joined pictographs": "👩\u200d",
    "joiners": "\u200d",
    "viramas": "\u094d",
    "conjuncts": "क\u094d",
    "leading jamo": "ᄀ",
    "vowel jamo": "ᅡ",
    "prepended characters": "\u0600",
    "CRLF": "\r\n",
    "letters": "日",
    "letters with marks": "e\u0301\u0323",
}


@pytest.mark.timeout(
    60
)  # `\X` alone takes minutes for 1 MB of regional indicators, which no call count shows
@pytest.mark.parametrize("name", HOSTILE)
def test_a_run_is_cut_up_once_however_often_it_is_asked_about(name, pattern):
    text = "é" + HOSTILE[name] * (1_000_000 // len(HOSTILE[name].encode()))
    found = Graphemes(text)
    positions = [*range(1, len(text), len(text) // 500), *range(len(text) - 1, 0, -(len(text) // 500))]
    for position in positions:
        assert found.floor(position) <= position <= found.ceil(position)
    assert pattern.characters <= 2 * len(text) + 1000
    assert pattern.calls <= 2 * len(positions)


def test_runs_between_plain_text_cost_their_own_length(pattern):
    text = ("\u0301" * 50 + "plain text, " * 20) * 200
    found = Graphemes(text)
    for position in range(0, len(text), 7):
        found.floor(position)
        found.ceil(position)
    assert pattern.characters <= len(text)
