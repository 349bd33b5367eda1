"""Patterns for paths."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.path_patterns import end_of_path, whole_path


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.md", "a.md"),
        ("*.md", ".md"),
        ("?[ab][!ab]", "xac"),
        ("[]x]", "]"),
        ("[a-]", "-"),
        ("[^a]", "^"),
        ("[", "["),
        ("[!]", "[!]"),
        ("a[/]b", "a[/]b"),
        ("**", "a/b/c"),
        ("**/c", "c"),
        ("**/c", "a/b/c"),
        ("a/**/**/c", "a/c"),
        ("a/**/c", "a/b/b/c"),
        ("a/**", "a/b/c"),
        ("a/", "a/b/c"),
        ("a**c", "abc"),
        ("a//b", "a//b"),
        ("a.c+(x)", "a.c+(x)"),
        ("a\nb*", "a\nb\n"),
    ],
)
def test_what_a_pattern_stands_for(pattern: str, path: str) -> None:
    assert whole_path(pattern).match(path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.md", "a/b.md"),
        ("?", "/"),
        ("[!a]", "/"),
        ("a[!b]c", "a/c"),
        ("a**c", "a/c"),
        ("a/", "a"),
        ("a/**/c", "ac"),
        ("a.c", "abc"),
        ("A", "a"),
        ("a", "a\n"),
    ],
)
def test_what_it_does_not_stand_for(pattern: str, path: str) -> None:
    assert not whole_path(pattern).match(path)


def test_the_end_of_a_path_is_met_from_the_beginning_of_a_name_on() -> None:
    assert end_of_path("b/c", "x").search("a/b/c")
    assert end_of_path("/a").search("/a")
    assert not end_of_path("b/c").search("ab/c")
    assert not end_of_path("a/b").search("a/b/c")
    assert not end_of_path().search("")


def test_a_range_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^'a/\[z-a\]' is no pattern: bad character range z-a$"):
        whole_path("a/[z-a]")


@given(st.text("ab*?[]!.\n", max_size=8), st.text("ab[]!.\n", max_size=6))
def test_within_a_name_it_means_what_a_shell_means(pattern: str, name: str) -> None:
    assert bool(whole_path(f"x{pattern}").match(f"x{name}")) == fnmatchcase(f"x{name}", f"x{pattern}")
