"""Source code has an outline of its imports, classes and functions, in every language and in any condition."""

from __future__ import annotations

import re
import subprocess
import sys
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.errors import ConfigError
from transforms.parsers.code import outline
from transforms.parsers.languages import LANGUAGES, grammar_of, language_of

PROGRAMS = {
    "python": '''
        #!/usr/bin/env python
        """What it is for."""

        import os  # the first

        # those of others
        import numpy
        from a import b; import c

        LIMIT = 1  # not of the function
        # a comment
        @cached
        @named("é")
        def area(x):
            return x  # the area

        # not of the class

        class Shape(Base):
            """A shape."""

            sides = 0

            # how long
            @property
            def length(self): return 1  # in metres
            class Edge:
                async def bend(self):
                    def hidden(): pass

        if TYPE_CHECKING:
            import hidden
        ''',
    "javascript": """
        'use strict';
        import a from 'a';
        import { b } from 'b';
        const c = require('c');

        /** A shape. */
        export default class Shape extends Base {
          static sides = 0;
          bend = () => { this.x(); };
          // how long
          get length() { return 1 }
          async *edges() {}
        }

        // the area
        export const area = async (x) => x * x;
        function first() {} function second() {}
        Shape.prototype.old = function () {};
        module.exports = { area, draw() {}, 'fill': function () {} };
        const memo = remember(() => 1);
        const sizes = { s: 1, m: [2, 3] };
        (function ($) {
          function inner() {}
        })(jQuery);
        show(sizes);
        """,
    "typescript": """
        import type { A } from './a';
        export interface Shape { sides: number }
        type Name = string;
        export enum Kind { Round }
        /** A square. */
        @Component({})
        export abstract class Square<T> implements Shape {
          private readonly x = 1;
          @Input()
          set side(x: number) { this.y = x }
          abstract area(): number;
          on = (e: Event): void => {};
        }
        function over(a: string): void;
        function over(a: unknown): { b: 1 } { return { b: 1 } }
        namespace N.M { export function inside() {} }
        declare module 'x' { class Y { z(): void } }
        """,
    "tsx": """
        export const View = ({ x }: Props) => <div onClick={() => x()}>text</div>;
        function Other() { return <View x={1} />; }
        """,
    "go": """
        // Package shapes draws.
        package shapes

        import "fmt"

        // A Shape has sides.
        type Shape struct { sides int }
        type Sides = int

        const limit = 1
        // Area of it.
        func (s *Shape[T]) Area() int { return 1 }
        func (Shape) Name() string { return "" }
        func New[T any](x T) *Shape { return nil }
        """,
    "java": """
        package a.b;

        import c.d;

        /** A shape. */
        @Entity
        public class Shape<T> extends Base {
          int sides;
          Shape() {}

          /** How long. */
          @Override
          public int length() { return 1; } // in metres
          enum Kind { ROUND; void turn() {} }
        }
        record Point(int x) { Point {} }
        interface Drawn { void draw(); }
        """,
    "rust": """
        //! Shapes.
        use std::fmt;
        use std::io;

        /// A shape.
        #[derive(Debug)]

        pub struct Shape { sides: u8 }
        impl<T> fmt::Display for &'a m::Shape<T> {
            // how
            #[inline]
            fn fmt(&self) {}
        }
        mod elsewhere;
        mod tests {
            #[test]
            fn works() {}
        }
        macro_rules! shape { () => {} }
        pub trait Drawn { fn draw(&self) {} }
        """,
    "c": """
        /* Licence. */

        #include <stdio.h>
        #include "shape.h"
        #ifdef DEBUG
        /* why */
        static int debug(void) { return 1; }
        #else
        int *const debug(int a) { return 0; }
        #endif
        struct later;
        struct shape { int sides; };
        typedef struct { int x; } point_t;
        typedef int (*callback)(int);
        static const struct shape square = { .sides = 4 };
        """,
    "cpp": """
        #pragma once
        #include <vector>
        namespace shapes::flat {
        /// A shape.
        template <class T>
        class Shape : public Base {
         public:
          Shape();
          ~Shape() {}
          // same
          bool operator==(const Shape& other) const { return true; }
          struct Edge { int length; };
        };
        template <class T> int& Shape<T>::area() const { return 1; }  // it
        }
        extern "C" {
        int plain(void) { return 1; }
        }
        """,
    "csharp": """
        using System;
        using System.IO;
        namespace Shapes.Flat
        {
            /// <summary>A shape.</summary>
            [Serializable]
            public class Shape<T> : Base
            {
                int sides;
                public int Sides { get; set; }
        #if DEBUG
                void Show() {}
        #endif
                public Shape() {}
            }
            interface IDrawn { void Draw(); }
        }
        """,
    "ruby": """
        require 'set'
        # Shapes.
        module Shapes::Flat
          class Shape < Base
            attr_reader :sides
            # how long
            private def length; 1 end
            class << self
              def square; end
            end
            def self.round; end
          end
          class Missing < StandardError; end
        end
        Point = Struct.new(:x) do
          def y; end
        end
        """,
    "php": """
        <html>
        <?php
        namespace Shapes\\Flat;
        use A\\B;
        use C\\D;
        /** A shape. */
        #[Entity]
        final class Shape extends Base {
          use Drawn;
          const SIDES = 1;
          /** How long. */
          public function length(): int { return 1; }
        }
        function area($x) { return $x; }
        trait Drawn { function draw() {} }
        """,
    "shell": """
        #!/bin/sh
        set -e

        # How long.
        length() {
          echo 1
        }  # in metres
        function round-up { :; }
        length
        """,
    "sql": """
        -- Shapes.
        CREATE TABLE flat.shapes (sides int); -- all of them

        -- Those that are round.
        CREATE OR REPLACE VIEW round AS SELECT * FROM shapes;
        CREATE FUNCTION area(x int) RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql;
        INSERT INTO shapes VALUES (4);
        """,
}

# `*` stands before what is alone; behind the path is the first line of the part.
OUTLINES = {
    "python": """
        - -: import os  # the first
        * area: # a comment
        * Shape: class Shape(Base):
        - Shape > length: # how long
        - Shape > Edge: class Edge:
        - Shape > Edge > bend: async def bend(self):
        """,
    "javascript": """
        - -: import a from 'a';
        * Shape: /** A shape. */
        - Shape > bend: bend = () => { this.x(); };
        - Shape > length: // how long
        - Shape > edges: async *edges() {}
        * area: // the area
        * first: function first() {}
        - second: function second() {}
        * Shape.prototype.old: Shape.prototype.old = function () {};
        * module.exports: module.exports = { area, draw() {}, 'fill': function () {} };
        - module.exports > draw: draw() {},
        - module.exports > fill: 'fill': function () {}
        - memo: const memo = remember(() => 1);
        * -: (function ($) {
        * - > inner: function inner() {}
        """,
    "typescript": """
        - -: import type { A } from './a';
        * Shape: export interface Shape { sides: number }
        - Name: type Name = string;
        - Kind: export enum Kind { Round }
        * Square: /** A square. */
        - Square > side: @Input()
        - Square > on: on = (e: Event): void => {};
        * over: function over(a: unknown): { b: 1 } { return { b: 1 } }
        * N.M: namespace N.M { export function inside() {} }
        - N.M > inside: export function inside() {}
        * x: declare module 'x' { class Y { z(): void } }
        - x > Y: class Y { z(): void }
        """,
    "tsx": """
        * View: export const View = ({ x }: Props) => <div onClick={() => x()}>text</div>;
        * Other: function Other() { return <View x={1} />; }
        """,
    "go": """
        - -: // Package shapes draws.
        * Shape: // A Shape has sides.
        - Sides: type Sides = int
        * Shape.Area: // Area of it.
        * Shape.Name: func (Shape) Name() string { return "" }
        * New: func New[T any](x T) *Shape { return nil }
        """,
    "java": """
        - -: package a.b;
        * Shape: /** A shape. */
        - Shape > Shape: Shape() {}
        - Shape > length: /** How long. */
        - Shape > Kind: enum Kind { ROUND; void turn() {} }
        - Shape > Kind > turn: void turn() {}
        * Point: record Point(int x) { Point {} }
        - Point > Point: Point {}
        * Drawn: interface Drawn { void draw(); }
        - Drawn > draw: void draw();
        """,
    "rust": """
        - -: //! Shapes.
        * Shape: /// A shape.
        * m::Shape: impl<T> fmt::Display for &'a m::Shape<T> {
        - m::Shape > fmt: // how
        * tests: mod tests {
        * tests > works: #[test]
        * shape: macro_rules! shape { () => {} }
        * Drawn: pub trait Drawn { fn draw(&self) {} }
        - Drawn > draw: fn draw(&self) {}
        """,
    "c": """
        - -: #include <stdio.h>
        * debug: /* why */
        * debug: int *const debug(int a) { return 0; }
        * shape: struct shape { int sides; };
        * point_t: typedef struct { int x; } point_t;
        """,
    "cpp": """
        - -: #include <vector>
        * shapes::flat: namespace shapes::flat {
        * shapes::flat > Shape: /// A shape.
        - shapes::flat > Shape > ~Shape: ~Shape() {}
        - shapes::flat > Shape > operator==: // same
        - shapes::flat > Shape > Edge: struct Edge { int length; };
        * shapes::flat > Shape<T>::area: template <class T> int& Shape<T>::area() const { return 1; }  // it
        * plain: int plain(void) { return 1; }
        """,
    "csharp": """
        - -: using System;
        * Shapes.Flat: namespace Shapes.Flat
        * Shapes.Flat > Shape: /// <summary>A shape.</summary>
        - Shapes.Flat > Shape > Sides: public int Sides { get; set; }
        - Shapes.Flat > Shape > Show: void Show() {}
        - Shapes.Flat > Shape > Shape: public Shape() {}
        * Shapes.Flat > IDrawn: interface IDrawn { void Draw(); }
        - Shapes.Flat > IDrawn > Draw: void Draw();
        """,
    "ruby": """
        * Shapes::Flat: # Shapes.
        * Shapes::Flat > Shape: class Shape < Base
        - Shapes::Flat > Shape > length: # how long
        - Shapes::Flat > Shape > self: class << self
        - Shapes::Flat > Shape > self > square: def square; end
        - Shapes::Flat > Shape > self.round: def self.round; end
        * Point: Point = Struct.new(:x) do
        - Point > y: def y; end
        """,
    "php": """
        - -: use A\\B;
        * Shape: /** A shape. */
        - Shape > length: /** How long. */
        * area: function area($x) { return $x; }
        * Drawn: trait Drawn { function draw() {} }
        - Drawn > draw: function draw() {}
        """,
    "shell": """
        * length: # How long.
        * round-up: function round-up { :; }
        """,
    "sql": """
        - flat.shapes: -- Shapes.
        - round: -- Those that are round.
        - area: CREATE FUNCTION area(x int) RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql;
        - -: INSERT INTO shapes VALUES (4);
        """,
}


def shown(text, language):
    """The outline as `OUTLINES` shows it."""

    def lines(nodes, path):
        for node in nodes:
            names = [*path, node.name or "-"]
            first_line = text[node.start : node.end].strip().splitlines()[0]
            yield f"{'*' if node.alone else '-'} {' > '.join(names)}: {first_line}"
            yield from lines(node.children, names)

    return list(lines(outline(text, language), []))


def paths(text, language="python"):
    return [line.partition(":")[0][2:] for line in shown(text, language)]


def parts(text, language="python"):
    """Texts of the outermost nodes."""
    return [text[node.start : node.end] for node in outline(text, language)]


def check(nodes, start, end):
    """Nodes are in order, without overlap, not empty, within [start, end), and so are those in them."""
    for node in nodes:
        assert start <= node.start < node.end <= end
        check(node.children, node.start, node.end)
        start = node.end


def program(language):
    return dedent(PROGRAMS[language]).strip("\n") + "\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_has_the_outline_of_its_definitions(language):
    expected = dedent(OUTLINES[language]).strip("\n").splitlines()
    assert shown(program(language), language) == expected


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_newlines_of_any_kind_give_the_same_outline(language, newline):
    text = program(language)
    assert shown(text.replace("\n", newline), language) == shown(text, language)


@pytest.mark.parametrize("language", [name for name in PROGRAMS if "ow long" in PROGRAMS[name]])
def test_places_are_in_code_points(language):
    text = program(language)
    assert outline(text.replace("ow long", "ów l\U0001f600ng"), language) == outline(text, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_cut_off_anywhere_has_an_outline_of_nested_spans(language):
    text = program(language)
    for end in range(len(text)):
        check(outline(text[:end], language), 0, end)


FRAGMENTS = sorted(
    {piece for text in PROGRAMS.values() for piece in re.findall(r"\w+|\W", text)}
    | {
        "\r",
        "\r\n",
        "\0",
        "\t",
        "\f",
        "\v",
        "\ufeff",
        "\ud800",
        "\U0001f600",
        "\u2028",
        "/*",
        "*/",
        "//",
        '"""',
    }
    | {
        "def f():\n",
        "class A:\n",
        "function f() {",
        "class A {",
        "{}\n",
        "# c\n",
        "#if X\n",
        "#endif\n",
        "    ",
    }
)


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join))
def test_any_text_has_an_outline_of_nested_spans(language, text):
    check(outline(text, language), 0, len(text))


def test_a_part_begins_with_its_indentation_and_ends_with_the_comment_on_its_line():
    text = "class A:\n\n    # why\n    @x\n    def f(self): pass  # so\n\n    # not\n\n    y = 1\n"
    (shape,) = outline(text, "python")
    (method,) = shape.children
    assert text[method.start : method.end] == "    # why\n    @x\n    def f(self): pass  # so"


def test_a_part_ends_with_its_semicolon():
    assert parts("class A {};  // so\nint x;\n", "cpp") == ["class A {};  // so"]


def test_a_comment_leads_to_what_follows_without_a_blank_line():
    assert parts("# a\n# b\n\n# c\ndef f(): pass\n") == ["# c\ndef f(): pass"]
    assert parts("x = 1  # a\ndef f(): pass\n") == ["def f(): pass"]
    assert parts("# a\nx = 1\ndef f(): pass\n") == ["def f(): pass"]
    assert parts("def f(): pass\n# a\ndef g(): pass\n") == ["def f(): pass", "# a\ndef g(): pass"]


def test_an_attribute_leads_over_blank_lines():
    text = "#[a]\n\n// b\n#[c]\n\nfn f() {}\n"
    assert parts(text, "rust") == [text[:-1]]


def test_imports_are_one_part_until_something_else_stands_between():
    first, second = "import a\n\n# b\nfrom b import c", "import d"
    assert parts(f"{first}\nx = 1\n{second}\n") == [first, second]


def test_a_text_that_its_parser_goes_round_in_has_no_nodes():
    text = (
        "Props( View N ({ x/}: export) = <div onClick={() => x()})text< >;\n"
        "function Other > { return <View x={1} />; }\n"
    )
    assert outline(text, "tsx") == ()


@pytest.mark.parametrize(("mark", "language"), [("\\\n", "python"), ("%w(", "ruby"), ("=begin\n", "ruby")])
def test_a_text_that_its_parser_reads_to_the_end_again_and_again_has_no_nodes(mark, language):
    text = "def f(): pass\n"
    assert outline(text * 50_000, "python")
    assert outline(text + mark * 50_000, language) == ()


def test_tabs_indent():
    assert parts("class A:\n\tdef f(self):\n\t\tpass\n") == ["class A:\n\tdef f(self):\n\t\tpass"]
    (node,) = outline("class A:\n\tdef f(self):\n\t\tpass\n", "python")
    assert [child.start for child in node.children] == [9]


def test_a_byte_order_mark_is_no_part_of_the_program():
    assert paths("\ufeffimport a\ndef f(): pass\n") == ["-", "f"]


def test_python_2_has_an_outline():
    text = """
print "x", 1
class A:
    def f(self, x):
        print >>err, x
        raise E, "x"
    def g(self):
        exec "x" in y
def h(): return ur"x"
"""
    assert paths(text) == ["A", "A > f", "A > g", "h"]


def test_what_parses_in_broken_code_is_found():
    text = "class A(:\n    def f(self): pass\n)))\ndef g(:\n    return 1\n\ndef h():\n    return 2\n"
    assert {path.split(" > ")[-1] for path in paths(text)} >= {"f", "h"}


def test_a_conflict_of_versions_hides_no_function():
    text = (
        "def f():\n    pass\n<<<<<<< ours\ndef g():\n    pass\n=======\n>>>>>>> theirs\ndef h():\n    pass\n"
    )
    assert {"f", "g", "h"} <= set(paths(text))


def test_parts_of_a_minified_line_are_not_alone():
    text = "!function(e){function a(n){return n}var b={c:1};class D{e(){}}}({1:function(){}});var f=()=>1;"
    assert shown(text, "javascript")[1:] == [
        "- - > a: function a(n){return n}",
        "- - > D: class D{e(){}}",
        "- - > D > e: e(){}",
        "- - > 1: 1:function(){}",
        "- f: var f=()=>1;",
    ]


def test_a_program_of_5_megabytes_has_its_outline():
    function = "def f{0}(x):\n    '''The {0}th.'''\n    return x + {0}\n\n\n"
    text = "".join(map(function.format, range(100_000)))
    nodes = outline(text, "python")
    assert len(text) > 5_000_000
    assert len(nodes) == 100_000
    check(nodes, 0, len(text))


def test_a_line_of_5_megabytes_has_its_outline():
    text = "".join(map("var f{0}=function(a){{return a+{0}}};".format, range(150_000)))
    assert len(text) > 5_000_000
    assert len(outline(text, "javascript")) == 150_000


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "x = " + "(" * 10_000 + ")" * 10_000 + "\ndef f(): pass\n"),
        ("javascript", "x = " + "(" * 10_000 + "1" + ")" * 10_000 + ";\nfunction f() {}\n"),
        ("javascript", "x = " + "{a:" * 10_000 + "()=>1" + "}" * 10_000 + ";\nfunction f() {}\n"),
        ("javascript", "(function(){" * 3_000 + "})()" * 3_000 + ";\nfunction f() {}\n"),
        ("c", "#ifdef A\n" * 10_000 + "int x;\n" + "#endif\n" * 10_000 + "int f() {}\n"),
        ("cpp", "namespace a {\n" * 10_000 + "}" * 10_000 + "\nint f() {}\n"),
        ("java", "class A {" * 10_000 + "}" * 10_000 + "\nclass f {}\n"),
        ("ruby", "class A\n" * 3_000 + "end\n" * 3_000 + "def f; end\n"),
    ],
    ids=["parentheses", "values", "objects", "calls", "conditions", "namespaces", "classes", "keywords"],
)
def test_no_nesting_is_too_deep(language, text):
    nodes = outline(text, language)
    assert nodes[-1].name == "f"
    check(nodes, 0, len(text))


def test_what_is_deeper_than_50_definitions_is_a_part_of_those():
    depth, nodes = 0, outline("class A {" * 60 + "}" * 60, "java")
    while nodes:
        depth, nodes = depth + 1, nodes[0].children
    assert depth == 51


@pytest.mark.parametrize(
    ("media_type", "path", "language"),
    [
        ("text/x-python", None, "python"),
        ("text/plain", "gs://b/a.b/Setup.PY", "python"),
        ("text/x-c", "shape.h", "cpp"),
        ("text/x-c", None, "c"),
        (None, "a/view.tsx", "tsx"),
        ("text/javascript", "bundle.min.mjs", "javascript"),
        ("text/markdown", "README.md", None),
        (None, "a.py/Makefile", None),
        (None, ".py", None),
        (None, None, None),
    ],
)
def test_the_language_is_told_by_extension_then_by_media_type(media_type, path, language):
    assert language_of(media_type, path) == language


def test_no_two_languages_claim_an_extension_or_media_type():
    for claims in (
        [extension for language in LANGUAGES.values() for extension in language.extensions.split()],
        [media_type for language in LANGUAGES.values() for media_type in language.media_types.split()],
    ):
        assert len(claims) == len(set(claims))


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_grammar_has_every_field_of_the_table(name):
    language = grammar_of(name).language
    kinds = {language.node_kind_for_id(number) for number in range(language.node_kind_count)}
    for field in " ".join(LANGUAGES[name].names.values()).split():
        assert field in kinds or language.field_id_for_name(field), field


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigError, match=r"language='cobol': is unknown; known are python, "):
        outline("", "cobol")


def test_a_missing_grammar_is_refused():
    script = (
        "import sys; sys.modules['tree_sitter_go'] = None\n"
        "from transforms.parsers.code import outline\n"
        "outline('def f(): pass', 'python')\n"
        "outline('package a', 'go')\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    error = process.stderr.splitlines()[-1]
    assert error.startswith("transforms.errors.ConfigError: language='go': ")
    assert error.endswith("needs pip install tree-sitter-go")


def test_grammars_are_loaded_when_they_are_needed():
    script = (
        "import sys\n"
        "from transforms.parsers.code import outline\n"
        "print(*(name for name in sys.modules if name.startswith('tree_sitter')))\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.split() == []
