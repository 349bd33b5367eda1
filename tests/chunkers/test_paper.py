"""The strategy `paper`."""

from __future__ import annotations

import pytest

from transforms.chunkers import get_chunker
from transforms.errors import ConfigError
from transforms.records import Block, Document


def paper(*parts, title=None):
    """A document of blocks, each a kind and a text; headings with a level: `heading2`."""
    blocks, start = [], 0
    for kind, text in parts:
        level = int(kind[7:]) if kind.startswith("heading") else None
        blocks.append(Block(kind[:7] if level else kind, start, start + len(text), level=level))
        start += len(text) + 2
    return Document("d", "\n\n".join(text for _, text in parts), blocks=tuple(blocks), title=title)


def cut(document, size=40, **settings):
    settings = {"tokenizer": "character", **settings}
    return get_chunker("paper", chunk_size=size, **settings).chunk(document)


ABSTRACT = "We show that ferries are late. They always were, and will be."
PARTS = (
    ("heading1", "On ferries"),
    ("heading2", "Abstract"),
    ("paragraph", ABSTRACT),
    ("heading2", "Method"),
    ("paragraph", "We waited."),
    ("heading2", "Results"),
    ("paragraph", "It was late."),
)


def test_the_section_under_a_heading_abstract_is_one_chunk_whatever_its_size():
    chunks = cut(paper(*PARTS))
    assert [chunk.text for chunk in chunks] == [
        "On ferries",
        f"Abstract\n\n{ABSTRACT}",
        "Method\n\nWe waited.",
        "Results\n\nIt was late.",
    ]
    assert [chunk.kind == "abstract" for chunk in chunks] == [False, True, False, False]
    assert [chunk.over_budget for chunk in chunks] == [False, True, False, False]
    assert not any(chunk.over_budget for chunk in cut(paper(*PARTS), 100))


@pytest.mark.parametrize(
    "heading", ["ABSTRACT", "1. Abstract", "Zusammenfassung", "摘要", "Résumé:", "الملخص"]
)
def test_the_heading_may_be_numbered_and_in_other_languages(heading):
    document = paper(
        ("heading1", heading), ("paragraph", ABSTRACT), ("heading1", "Rest"), ("paragraph", "No.")
    )
    assert [chunk.kind for chunk in cut(document)] == ["abstract", "body"]


def test_the_headings_over_an_abstract_can_be_set():
    chunks = cut(paper(*PARTS), abstract_headings=["Results"])
    assert [chunk.text for chunk in chunks if chunk.kind == "abstract"] == ["Results\n\nIt was late."]


def test_an_abstract_block_goes_before_a_heading():
    document = paper(("title", "On ferries"), ("abstract", ABSTRACT), *PARTS[3:])
    assert [chunk.text for chunk in cut(document) if chunk.kind == "abstract"] == [ABSTRACT]


@pytest.mark.parametrize(
    ("document", "title"),
    [
        (paper(("title", "On\nferries"), ("heading1", "Other"), ("paragraph", "Text.")), "On ferries"),
        (
            paper(("heading2", "Deep"), ("heading1", "High"), ("heading2", "Low"), ("paragraph", "Text.")),
            "High",
        ),
        (paper(("title", "Mine"), ("paragraph", "Text."), title="Given"), "Given"),
    ],
)
def test_the_title_is_told_in_the_full_context(document, title):
    assert (cut(document, context="full")[-1].context or "").startswith(title)


def test_a_title_alone_is_told_within_the_budget():
    document = paper(("title", "On ferries"), ("paragraph", "One two three four five six seven eight."))
    for chunk in cut(document, 32, context="full", context_in_budget=True)[1:]:
        assert chunk.context == "On ferries"
        assert len(chunk.contextual_text) <= 32


def test_sections_never_share_a_chunk():
    assert len(cut(paper(*PARTS), 1000)) == 4


def test_sections_are_cut_by_another_strategy():
    chunks = cut(paper(("paragraph", "One two. Three four. Five.")), 12, sections="sentence")
    assert [chunk.text for chunk in chunks] == ["One two.", "Three four.", "Five."]
    assert {chunk.strategy for chunk in chunks} == {"paper:sentence"}
    assert cut(paper(*PARTS))[0].strategy == "paper:delimiter"
    with pytest.raises(ConfigError, match=r"^sections.chunk_size=99: is larger than chunk_size=40"):
        cut(paper(*PARTS), sections={"name": "sentence", "chunk_size": 99})


def test_a_caption_stays_with_its_figure_or_table():
    document = paper(
        ("paragraph", "Text text text."),
        ("figure", "[image 1]"),
        ("caption", "Figure 1. A ferry."),
        ("caption", "Table 1. Fares."),
        ("table", "| a | 12.50 |"),
        ("paragraph", "More."),
    )
    assert [chunk.text for chunk in cut(document, 33)] == [
        "Text text text.",
        "[image 1]\n\nFigure 1. A ferry.",
        "Table 1. Fares.\n\n| a | 12.50 |",
        "More.",
    ]
