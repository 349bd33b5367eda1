"""JSON becomes an outline of its source text: nested spans named by their path, whatever the text."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.parsers.json_text import outline_json, outline_json_lines

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=30,
)
DUMPS = st.sampled_from(
    [
        lambda value: json.dumps(value),
        lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
        lambda value: "\r\n\t " + json.dumps(value, indent="\t").replace("\n", " \r\n") + "\n\n",
    ]
)
PIECES = (
    r"""{ } [ ] , : " \ \" \\ "a" "k": 1 -2.5e3 01 null tru NaN Infinity -Infinity é 港 \u0041 \x 0""".split()
)
SOUP = st.lists(st.sampled_from([*PIECES, " ", "\n", "\t", "\u00a0", "\ufeff"]), max_size=25).map("".join)


def is_json(text):
    try:
        json.loads(text.removeprefix("\ufeff"), strict=False)
    except ValueError:
        return False
    return True


def walk(text, root):
    """Every node with its path, outermost first, its laws checked."""
    found, stack = [], [(root.name, root)]
    while stack:
        path, node = stack.pop()
        assert 0 <= node.start < node.end <= len(text)
        found.append((path, node))
        held = node.start
        for place, child in enumerate(node.children):
            assert held <= child.start < child.end <= node.end
            assert not place or not text[held : child.start].strip(" \t\r\n"), "text between neighbours"
            held = child.end
        if node.children:
            assert node.children.starts == [child.start for child in node.children]
            assert node.children.ends == [child.end for child in node.children]
        stack.extend((path + child.name, child) for child in reversed(node.children))
    return found


def slices(text):
    """The text of each node by its path."""
    return {path: text[node.start : node.end] for path, node in walk(text, outline_json(text))}


def value_of(text, node):
    """The value that a node stands for, from its source text."""
    source = text[node.start : node.end].rstrip(" \t\r\n").removesuffix(",")
    if not node.name.startswith(("$", "[")) or node.name.startswith('["'):
        ((_, value),) = json.loads("{" + source + "}", strict=False).items()
        return value
    return json.loads(source, strict=False)


class TestOutline:
    def test_members_and_elements_are_named_by_their_steps(self):
        text = '{"title": "log", "items": [1, {"name": "b"}], "odd key": {}, "名前": null}'
        assert slices(text) == {
            "$": text,
            "$.title": '"title": "log",',
            "$.items": '"items": [1, {"name": "b"}],',
            "$.items[0]": "1,",
            "$.items[1]": '{"name": "b"}',
            "$.items[1].name": '"name": "b"',
            '$["odd key"]': '"odd key": {},',
            "$.名前": '"名前": null',
        }

    def test_the_comma_that_follows_belongs_to_the_part_and_brackets_to_the_node_around(self):
        text = '[ \n  1 \t,\n  "a,]b" ,{} \n]\n'
        assert list(slices(text).values())[1:] == ["1 \t,", '"a,]b" ,', "{}"]

    def test_empty_values_are_there(self):
        stops = {f"stop-{number}": {} for number in range(1, 13)}
        value = {
            "ferry": {"stops": stops, "note": "", "crew": [], "captain": None, "open": False, "seats": 0}
        }
        found = slices(json.dumps(value))
        assert {f'$.ferry.stops["{stop}"]' for stop in stops} < set(found)
        assert {f"$.ferry.{name}" for name in ("note", "crew", "captain", "open", "seats")} < set(found)
        assert found["$.ferry.crew"] == '"crew": [],'

    def test_a_long_value_is_one_part_and_whole(self):
        body = " ".join(f"entry{number:04}" for number in range(500))
        items = [f"item{number:04}" for number in range(300)]
        found = slices(json.dumps({"title": "log", "body": body, "list": items, "end": True}))
        assert found["$.body"] == f'"body": "{body}",'
        assert [found[f"$.list[{place}]"].rstrip(",") for place in range(300)] == [
            f'"{item}"' for item in items
        ]
        assert found["$.title"] == '"title": "log",'
        assert found["$.end"] == '"end": true'

    def test_duplicate_keys_are_all_there(self):
        text = '{"a": 1, "a": 2, "a": {"b": 3}}'
        root = outline_json(text)
        assert [(child.name, text[child.start : child.end]) for child in root.children] == [
            (".a", '"a": 1,'),
            (".a", '"a": 2,'),
            (".a", '"a": {"b": 3}'),
        ]

    def test_keys_stand_in_the_path_as_the_source_writes_them(self):
        text = r'{"caf\u00e9": 1, "a\"b": 2, "": 3, "x.y" : 4, "\\": {"$ref": 5}}'
        assert list(slices(text)) == [
            "$",
            r'$["caf\u00e9"]',
            r'$["a\"b"]',
            '$[""]',
            '$["x.y"]',
            r'$["\\"]',
            r'$["\\"]["$ref"]',
        ]

    def test_a_long_key_is_said_in_short(self):
        text = json.dumps({"k" * 100_000: {"v": 1}})
        (member,) = outline_json(text).children
        assert member.name == '["' + "k" * 199 + "…]"
        assert (member.start, member.end) == (1, len(text) - 1)

    def test_brackets_and_quotes_in_strings_are_text(self):
        value = ["}{][,:", '"', "\\", '\\"', '\\\\"', "[[[["]
        text = json.dumps(value)
        assert [value_of(text, child) for child in outline_json(text).children] == value

    @pytest.mark.parametrize(
        "text", ["1", '"a"', "null", " -0.5e-3\n", "NaN", "{}", "[ ]", '"[1]"', "\ufeff 1"]
    )
    def test_a_value_without_parts_has_no_children(self, text):
        root = outline_json(text)
        assert (root.start, root.end, root.name, list(root.children)) == (0, len(text), "$", [])

    def test_a_byte_order_mark_is_accepted(self):
        assert slices('\ufeff{"a": [1]}')["$.a[0]"] == "1"

    def test_numbers_that_json_has_no_word_for_are_accepted(self):
        text = '{"a": NaN, "b": [-Infinity, Infinity], "c": ' + "7" * 10_000 + "}"
        assert list(slices(text)) == ["$", "$.a", "$.b", "$.b[0]", "$.b[1]", "$.c"]

    def test_control_characters_in_strings_are_accepted(self):
        assert slices('["a\tb\n", 2]')["$[0]"] == '"a\tb\n",'

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "",
                " ",
                "\ufeff",
                "{",
                "}",
                "[1",
                "[1]]",
                "[1] x",
                "[1] [2]",
                '{"a"}',
                '{"a":}',
                '{"a" 1}',
                "[,]",
            ),
            *(
                "[1,]",
                '{"a": 1,}',
                "{'a': 1}",
                '"a',
                '["\\x"]',
                '["\\u12"]',
                "[01]",
                "[1 2]",
                "[tru]",
                "[+1]",
            ),
            *(
                "// c\n1",
                "[1\u00a0]",
                '\\"a"',
                "[1}",
                '{"a": 1]',
                "[[1}}",
                "\ufeff\ufeff1",
                "nan",
                "---\na: 1\n",
            ),
        ],
    )
    def test_what_is_not_json_has_no_outline(self, text):
        assert outline_json(text) is None

    @given(VALUES, DUMPS)
    def test_every_node_holds_its_value(self, value, dumps):
        text = dumps(value)
        expected, stack = [], [value]
        while stack:
            expected.append(top := stack.pop())
            inner = list(top.values()) if isinstance(top, dict) else top if isinstance(top, list) else []
            stack.extend(reversed(inner))
        found = [value_of(text, node) for _, node in walk(text, outline_json(text))]
        assert list(map(repr, found)) == [repr(json.loads(json.dumps(each))) for each in expected]

    @given(SOUP)
    def test_any_text_is_json_for_us_if_it_is_for_python(self, text):
        root = outline_json(text)
        assert (root is not None) == is_json(text)
        if root:
            walk(text, root)

    @given(VALUES, DUMPS, st.data())
    def test_a_cut_off_or_damaged_text_is_never_misread(self, value, dumps, data):
        text = dumps(value)
        at = data.draw(st.integers(0, len(text)))
        for damaged in (text[:at], text[:at] + data.draw(st.sampled_from(PIECES)) + text[at:]):
            root = outline_json(damaged)
            assert (root is not None) == is_json(damaged)
            if root:
                walk(damaged, root)


class Counted(str):
    """A text that counts the characters read from it."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.read = 0
        return self

    def __getitem__(self, key):
        part = super().__getitem__(key)
        self.read += len(part)
        return part


class TestDepth:
    DEEP = 10_000

    @pytest.mark.parametrize(
        ("text", "is_right"),
        [
            ("[" * DEEP + "]" * DEEP, True),
            ('{"a":' * DEEP + "1" + "}" * DEEP, True),
            ('[1, {"a": ' * DEEP + "[]" + "}, 2]" * DEEP, True),
            ("\ufeff " + "[\n" * 100_000 + "]" * 100_000, True),
            ("[" * DEEP + "1 1" + "]" * DEEP, False),
            ("[" * DEEP + "tru" + "]" * DEEP, False),
            ("[" * DEEP + "]" * (DEEP - 1), False),
            ("[" * DEEP + "]" * (DEEP + 1), False),
            ("[" * DEEP + "]" * (DEEP // 2) + "}" * (DEEP // 2), False),
            ("[1" * DEEP + "]" * DEEP, False),
            ("[" * DEEP + "]1" * DEEP, False),
            ("[" * DEEP + "]" * DEEP + "1", False),
            ("[" * DEEP + r'\""' + "]" * DEEP, False),
            ("]" * DEEP + "[" * DEEP, False),
            ("[" * 100_000, False),
            ('{"a":' * 100_000, False),
        ],
        ids=range(16),
    )
    def test_nesting_has_no_limit(self, text, is_right):
        root = outline_json(text)
        assert (root is not None) == is_right
        assert outline_json_lines(text.replace("\n", " "))[1] == (not is_right)

    @pytest.mark.parametrize("opening", ["[", '{"a":', '[0,{"b":'])
    def test_deep_nodes_are_named_and_nested(self, opening):
        depth = self.DEEP
        closing = {"[": "]", '{"a":': "}", '[0,{"b":': "}]"}[opening]
        text = opening * depth + "null" + closing * depth
        node, steps = outline_json(text), []
        while node.children:
            child = node.children[-1]
            assert node.start <= child.start < child.end <= node.end
            node = child
            steps.append(node.name)
        assert text[node.start : node.end].removeprefix('"a":').removeprefix('"b":') == "null"
        assert "".join(steps) == {"[": "[0]", '{"a":': ".a", '[0,{"b":': "[1].b"}[opening] * depth

    @pytest.mark.parametrize(
        "text",
        [
            '{"k":' * 10_000 + "1" + "}" * 10_000,
            json.dumps({"a": [{"b": list(range(1000)), "c": "word " * 1000}] * 20}, indent=1),
            " " * 100_000 + "[" + " " * 100_000 + "]",
            "[" + ",".join(["[]"] * 30_000) + "]",
        ],
        ids=["chain", "mixed", "white space", "empty containers"],
    )
    def test_opening_every_container_reads_the_text_twice_at_most(self, text):
        counted = Counted(text)
        stack = [outline_json(counted)]
        while stack:
            stack.extend(stack.pop().children)
        # Once to find the parts of all containers; then the keys.
        assert len(text) <= counted.read <= 2 * len(text)


class TestLines:
    def test_each_line_is_a_node_and_bad_lines_are_kept_and_counted(self):
        text = '{"id": 1, "tags": ["a"]}\r\n\n  {"id": 2} \nnot json {\n[1, 2\n"é\u2028x"\n   \n3'
        nodes, bad = outline_json_lines(text)
        assert bad == 2
        assert [(node.name, text[node.start : node.end]) for node in nodes] == [
            ("$[0]", '{"id": 1, "tags": ["a"]}'),
            ("$[1]", '{"id": 2}'),
            ("$[2]", "not json {"),
            ("$[3]", "[1, 2"),
            ("$[4]", '"é\u2028x"'),
            ("$[5]", "3"),
        ]
        paths = {path: text[node.start : node.end] for top in nodes for path, node in walk(text, top)}
        assert paths["$[0].tags[0]"] == '"a"'
        assert paths["$[1].id"] == '"id": 2'
        assert not nodes[2].children
        assert not nodes[3].children

    def test_a_byte_order_mark_spoils_no_line(self):
        text = '\ufeff{"a": 1}\n{"a": 2}'
        nodes, bad = outline_json_lines(text)
        assert bad == 0
        assert [child.name for node in nodes for child in node.children] == [".a", ".a"]

    def test_one_text_leaves_nothing_to_the_next(self):
        outline_json_lines('{"ferry": 1}\n{')
        assert outline_json_lines('{"other": 1}')[1] == 0
        assert list(slices('{"other": 1}')) == ["$", "$.other"]

    @given(
        st.lists(SOUP | st.builds(lambda dumps, value: dumps(value), DUMPS, VALUES), max_size=6), st.data()
    )
    def test_every_line_that_is_not_blank_is_in_one_node(self, lines, data):
        text = "".join(line + data.draw(st.sampled_from(["\n", "\r\n", "\r"])) for line in lines)
        nodes, bad = outline_json_lines(text)
        held = 0
        for node in nodes:
            assert not text[held : node.start].strip()
            walk(text, node)
            held = node.end
        assert not text[held:].strip()
        found = [text[node.start : node.end] for node in nodes]
        found[:1] = [line.removeprefix("\ufeff") for line in found[:1]]
        assert bad == sum(line.startswith("\ufeff") or not is_json(line) for line in found)


def test_the_recursion_limit_is_not_raised():
    before = sys.getrecursionlimit()
    outline_json("[" * 5000 + "]" * 5000)
    assert sys.getrecursionlimit() == before
