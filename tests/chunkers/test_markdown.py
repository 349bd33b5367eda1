"""The strategy `markdown`: sections in windows of a few lines."""

from __future__ import annotations

import pytest

from transforms.chunkers import get_chunker
from transforms.records import Block, Document, Source

LINES = "".join(f"Line {n}.\n" for n in range(40))
README = f"""Lead.

# Boats

## Build

Run it.

```sh
# no heading
make
```

<!--
# none either
-->

## Usage

{LINES}"""


def chunks(text, media_type="text/plain", blocks=None, **settings):
    document = Document("d", text, media_type, blocks=blocks, source=Source(uri="README"))
    return get_chunker("markdown", **settings).chunk(document)


@pytest.mark.parametrize("media_type", ["text/plain", "text/markdown"])
def test_a_section_is_a_chunk_and_a_heading_without_a_body_joins_the_next(media_type):
    lead, build, *usage = chunks(README, media_type)
    assert lead.text == "Lead."
    assert build.text.startswith("# Boats\n\n## Build\n\nRun it.")
    assert build.text.endswith("-->")
    assert usage[0].text.startswith("## Usage")
    assert {chunk.heading_path for chunk in usage} == {("Boats", "Usage")}


def test_no_chunk_has_more_than_thirty_lines_or_as_many_as_told():
    for settings, limit in (({}, 30), ({"max_lines": 7}, 7), ({"max_lines": 1}, 1)):
        found = chunks(README, **settings)
        assert max(last - first + 1 for first, last in (chunk.lines for chunk in found)) == limit
        assert "".join("".join(chunk.text.split()) for chunk in found) == "".join(README.split())


def test_without_a_limit_the_budget_alone_counts():
    assert len(chunks(README, max_lines=0)) == 3


def test_the_budget_counts_too():
    found = chunks(README, chunk_size=20)
    assert max(chunk.token_count for chunk in found) <= 20
    assert {chunk.strategy for chunk in found} == {"markdown", "markdown:recursive"}


def test_an_overlap_keeps_to_the_limit_of_lines():
    found = chunks(LINES, chunk_overlap=20, max_lines=6)
    assert max(last - first + 1 for first, last in (chunk.lines for chunk in found)) == 6
    assert any(chunk.overlap for chunk in found)


def test_blocks_that_came_with_the_document_are_taken_as_they_are():
    blocks = (Block("paragraph", 0, 10), Block("paragraph", 11, 15))
    assert len(chunks("# no head\n\nbody", blocks=blocks)) == 1
    assert chunks("# no head\n\nbody", blocks=blocks)[0].heading_path == ()
