"""The strategy `code`: whole definitions, and windows of lines where one is too large."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from transforms.chunkers import get_chunker
from transforms.errors import ConfigError
from transforms.records import Document, Source

LONG = "def long():\n" + "".join(f"    x{n} = {n}\n" for n in range(20))


def result(text, uri="a.py", **settings):
    document = Document("d", text, source=Source(uri=uri))
    return get_chunker("code", **settings).chunk_document(document)


def chunks(text, uri="a.py", **settings):
    return list(result(text, uri, **settings).chunks)


def lines_of(found):
    return [line for chunk in found for line in chunk.text.split("\n") if line.strip()]


# --------------------------------------------------------------------------------------------------------- definitions

JOBS = (
    '\ufeff"""Jobs."""\nimport asyncio\nfrom functools import cache\n\n\n@cache\n@traced\ndef size(name):\n\n'
    "    return len(name)\n\n\n@retry(\n    times=3,\n    wait=0.5,\n)\nasync def fetch(url):\n"
    "    await asyncio.sleep(0)\n    return url\n\n\n"
    '@register("boat")\nclass Boat:\n    @property\n    def name(self):\n        return "b"\n\n'
    "    @name.setter\n    def name(self, value):\n        pass\n"
)


def test_a_definition_starts_at_its_first_decorator_also_after_a_byte_order_mark():
    found = {chunk.heading_path[-1]: chunk for chunk in chunks(JOBS, "jobs.py")}
    assert {name: found[name].lines for name in ("size", "fetch", "Boat")} == {
        "size": (6, 10),
        "fetch": (13, 19),
        "Boat": (22, 30),
    }
    assert lines_of(chunks(JOBS)) == [line for line in JOBS.split("\n") if line.strip()]
    assert {chunk.kind for chunk in found.values()} == {"code"}


def test_positions_count_code_points_where_the_parser_counts_bytes():
    text = '# 港の時刻表 🚢\nimport os\n\n\ndef first():\n    return "一"\n\n\ndef second():\n    return os.name\n'
    second = chunks(text, "harbour.py")[-1]
    assert second.text == "def second():\n    return os.name"
    assert second.lines == (9, 10)
    assert second.spans == ((text.index("def second"), len(text) - 1),)
    assert text.encode()[slice(*second.byte_span)].decode() == second.text


PANEL = """import React, { useState } from "react";
import type { Tide } from "./types";

const RE = /function\\s*\\{[^}]*\\}/g;
const label = `tide ${"{"} not a block ${"}"} function fake() {`;

export const total = (xs: number[]): number => {
  return xs.reduce((a, b) => a + b, 0);
};

class Gauge<T extends Tide = Tide> {
  #level = 0;
  static unit = "m";
  read = async (): Promise<T | undefined> => {
    return undefined;
  };
  get level() { return this.#level; }
}

export default function Panel<T,>({ tides }: { tides: T[] }) {
  const [open, setOpen] = useState(false);
  // a brace in a comment: {
  return <ul onClick={() => setOpen(!open)}>{tides.map((t) => <li key={String(t)}>{"}"}</li>)}</ul>;
}

Panel.displayName = "Panel";
"""


def test_every_line_of_a_component_is_in_one_chunk_and_braces_in_strings_mean_nothing():
    found = chunks(PANEL, "panel.tsx")
    assert lines_of(found) == [line for line in PANEL.split("\n") if line.strip()]
    holding = [chunk for chunk in found if "const total" in chunk.text]
    assert [chunk.lines for chunk in holding] == [(7, 9)]
    assert [chunk.lines for chunk in found if "function Panel" in chunk.text] == [(20, 24)]
    assert not any("fake" in name for chunk in found for name in chunk.heading_path)


def test_a_method_is_told_with_its_module_and_class():
    text = "class Boat:\n    '''A boat.'''\n\n    def sail(self):\n        return 1\n\n    def " + LONG[
        4:
    ].replace("\n", "\n    ")
    found = chunks(text, "harbour/boats.py", chunk_size=60)
    assert found[0].heading_path == ("boats", "Boat")
    assert found[0].text.startswith("class Boat:")
    windows = found[1:]
    assert {chunk.heading_path for chunk in windows} == {("boats", "Boat", "long")}
    assert windows[0].context == "boats > Boat > long"
    assert {chunk.parent_id for chunk in windows} == {found[0].chunk_id}


def test_the_brace_that_ends_a_class_is_no_chunk_of_its_own():
    body = "".join(f"    int m{n}() {{\n        return {n};\n    }}\n" for n in range(9))
    found = chunks(f"class Boat {{\n{body}}}\n", "Boat.java", chunk_size=40)
    assert len(found) > 2
    assert all(chunk.text.strip() != "}" for chunk in found)
    assert found[-1].text.endswith("}\n}")


def test_of_broken_code_what_parses_is_cut_by_its_definitions_and_nothing_is_lost():
    text = f"def f(:\n    ]]\n\n\n{LONG}\n\ndef g():\n    return 1\n\nclass (:\n"
    found = chunks(text)
    assert lines_of(found) == [line for line in text.split("\n") if line.strip()]
    assert any(chunk.text.startswith("def long():") for chunk in found)


@pytest.mark.parametrize(
    "text", ["print 'a', b\nexec code in d\n\ndef f((a, b)):\n\tprint a\n", f"\tx\n{LONG}"]
)
def test_old_code_and_tabs_are_cut_too(text):
    assert lines_of(chunks(text)) == [line for line in text.split("\n") if line.strip()]


def test_a_minified_line_is_cut_within_the_budget_and_whole():
    text = ";".join(f"function f{n}(a,b){{return a+b*{n}}}" for n in range(300)) + ";" + "x" * 3000
    found = chunks(text, "app.min.js", chunk_size=50)
    assert "".join(chunk.text for chunk in found) == text
    assert all(chunk.token_count <= 50 for chunk in found)


# --------------------------------------------------------------------------------------------------- windows of lines


def test_a_document_in_no_known_language_is_cut_between_its_lines_which_is_noted():
    found = result(LONG, "notes.txt", chunk_size=40)
    assert found.notes == {"no known programming language": 1}
    assert lines_of(found.chunks) == LONG.strip().split("\n")
    assert {chunk.kind for chunk in found.chunks} == {"body"}


def test_no_chunk_has_more_lines_than_allowed():
    for limit in (1, 3, 8):
        found = chunks(LONG + "\n\nx = 1\n", max_chunk_lines=limit)
        sizes = [last - first + 1 for first, last in (chunk.lines for chunk in found)]
        assert max(sizes) == limit
        assert lines_of(found) == lines_of(chunks(LONG + "\n\nx = 1\n"))


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_windows_share_whole_lines(line_break):
    found = chunks(LONG.replace("\n", line_break), max_chunk_lines=8, overlap_lines=2)
    assert [chunk.lines for chunk in found] == [(1, 8), (7, 14), (13, 20), (19, 21)]
    assert all(after.text.startswith("    x") for after in found[1:])


def test_shared_lines_give_way_to_the_budget():
    found = chunks(LONG, chunk_size=30, overlap_lines=4)
    assert all(chunk.token_count <= 30 for chunk in found)
    for before, after in pairwise(found):
        assert 1 <= before.lines[1] - after.lines[0] + 1 <= 4


def test_an_overlap_of_whole_windows_is_refused():
    with pytest.raises(ConfigError, match=r"^overlap_lines=5: must be less than max_chunk_lines=5$"):
        get_chunker("code", max_chunk_lines=5, overlap_lines=5)


def test_a_part_of_a_document_that_another_strategy_leaves_over_is_cut_between_its_lines():
    text = f"# A\n\n{LONG}\n\n# B\n\n{LONG}"
    fallback = {"name": "code", "language": "python"}
    chunker = get_chunker("heading", chunk_size=60, fallback=fallback)
    found = chunker.chunk(Document("d", text, "text/markdown"))
    assert {chunk.heading_path for chunk in found} == {("A",), ("B",)}
    assert json.dumps(lines_of(found)) == json.dumps(
        lines_of(chunker.chunk(Document("d", text, "text/markdown")))
    )
    assert lines_of(found) == [line for line in text.split("\n") if line.strip()]
