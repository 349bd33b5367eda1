"""The programming languages whose files are cut by their syntax tree: one table of node kinds for each.

A table is all that is written for a language; its grammar comes from a wheel, and nothing is downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from transforms.errors import ConfigError

if TYPE_CHECKING:
    import tree_sitter

_ERROR_KIND = 0xFFFF


class Role(Enum):
    """What nodes of a kind are to the outline; the value is the field of `Language` that lists the kinds."""

    FUNCTION = "functions"
    CLASS = "classes"
    NAMESPACE = "namespaces"
    STATEMENT = "statements"
    IMPORT = "imports"
    BODY = "bodies"
    WRAPPER = "wrappers"
    CALL = "calls"
    COMMENT = "comments"
    ATTRIBUTE = "attributes"


_DEFINITIONS = {Role.FUNCTION, Role.CLASS, Role.NAMESPACE, Role.STATEMENT}
_TO_DEFINITIONS = {*_DEFINITIONS, Role.WRAPPER, Role.CALL, Role.BODY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """How a language is known, where its grammar is, and what the kinds of nodes in its trees mean.

    A list is one string with spaces. A definition that is no part of another one is at the top.

    Args:
        extensions: Those of its files.
        media_types: Those of its documents.
        wheel: Package that brings the grammar; its module has the same name with underscores.
        grammar: Function of that module that gives the grammar.
        functions: Definitions that have no parts. At the top each is a chunk by itself.
        classes: Definitions that have a body, and parts in it; without a body they only declare. At the top
            each is a chunk by itself, its parts are not.
        namespaces: The same, but what is inside is at the top where the namespace is.
        statements: Parts that may share a chunk with others.
        imports: Statements that are one part where they follow each other.
        bodies: What only holds others: they stand in its place. Inside of a statement, as `{ draw() {} }` is, it
            makes them parts of that statement.
        wrappers: What belongs to the definition inside it, such as `export` and `const f =`.
        sign: A pattern that every definition in a wrapper has a match of, which spares a look into the others.
        calls: Expressions around a function that is called or handed on where it is written. The function is
            no definition, but those in its body are parts of the statement.
        comments: They belong to what follows at once.
        attributes: They belong to what follows, over blank lines too.
        names: The fields that name a kind, or kinds of its children, joined by dots. It is `name` for
            definitions unless told otherwise.
        identifiers: The kinds to look for inside such a field; without any, its text is the name.
    """

    extensions: str
    media_types: str
    wheel: str
    grammar: str = "language"
    functions: str = ""
    classes: str = ""
    namespaces: str = ""
    statements: str = ""
    imports: str = ""
    bodies: str = ""
    wrappers: str = ""
    sign: str = ""
    calls: str = ""
    comments: str = "comment"
    attributes: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    identifiers: str = ""


_JAVASCRIPT = Language(
    extensions="js jsx mjs cjs",
    media_types="text/javascript text/jsx",
    wheel="tree-sitter-javascript",
    functions="function_declaration generator_function_declaration method_definition class_static_block "
    "arrow_function function_expression generator_function",
    classes="class_declaration class",
    imports="import_statement",
    bodies="class_body statement_block object",
    wrappers="export_statement expression_statement lexical_declaration variable_declaration "
    "variable_declarator assignment_expression pair field_definition",
    # An arrow, a class, or the brace of a body behind its parameters: calls and data mostly have none.
    sign=r"=>|\bclass\b|\)[^(){}]*\{",
    calls="call_expression parenthesized_expression arguments member_expression unary_expression new_expression "
    "await_expression",
    comments="comment html_comment",
    attributes="decorator",
    names={
        "variable_declarator": "name",
        "assignment_expression": "left",
        "pair": "key",
        "field_definition": "property",
    },
)
_TYPESCRIPT = replace(
    _JAVASCRIPT,
    extensions="ts mts cts",
    media_types="text/typescript",
    wheel="tree-sitter-typescript",
    grammar="language_typescript",
    functions=_JAVASCRIPT.functions + " interface_declaration",
    classes=_JAVASCRIPT.classes + " abstract_class_declaration",
    namespaces="module internal_module",
    statements="type_alias_declaration enum_declaration",
    wrappers=_JAVASCRIPT.wrappers.replace("field_definition", "public_field_definition")
    + " ambient_declaration",
    sign=_JAVASCRIPT.sign + r"|\b(?:interface|type|enum|namespace|module|global)\b",
    calls=_JAVASCRIPT.calls + " as_expression satisfies_expression",
    names={
        "variable_declarator": "name",
        "assignment_expression": "left",
        "pair": "key",
        "public_field_definition": "name",
    },
)
_C = Language(
    extensions="c",
    media_types="text/x-c",
    wheel="tree-sitter-c",
    functions="function_definition",
    classes="struct_specifier union_specifier enum_specifier",
    imports="preproc_include",
    bodies="field_declaration_list enumerator_list declaration_list linkage_specification preproc_if "
    "preproc_ifdef preproc_elif preproc_elifdef preproc_else",
    wrappers="type_definition declaration field_declaration",
    sign=r"\{",
    names={"function_definition": "declarator", "type_definition": "declarator"},
    identifiers="identifier field_identifier type_identifier",
)

LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        "python": Language(
            extensions="py pyi pyw",
            media_types="text/x-python",
            wheel="tree-sitter-python",
            functions="function_definition",
            classes="class_definition",
            imports="import_statement import_from_statement future_import_statement",
            bodies="block",
            wrappers="decorated_definition",
        ),
        "javascript": _JAVASCRIPT,
        "typescript": _TYPESCRIPT,
        "tsx": replace(_TYPESCRIPT, extensions="tsx", media_types="text/tsx", grammar="language_tsx"),
        "go": Language(
            extensions="go",
            media_types="text/x-go",
            wheel="tree-sitter-go",
            functions="function_declaration method_declaration type_spec",
            statements="type_alias",
            imports="package_clause import_declaration",
            wrappers="type_declaration",
            names={"method_declaration": "receiver name"},
            identifiers="type_identifier field_identifier",
        ),
        "java": Language(
            extensions="java",
            media_types="text/x-java",
            wheel="tree-sitter-java",
            functions="method_declaration constructor_declaration compact_constructor_declaration "
            "module_declaration",
            classes="class_declaration interface_declaration enum_declaration record_declaration "
            "annotation_type_declaration",
            imports="package_declaration import_declaration",
            bodies="class_body interface_body enum_body enum_body_declarations annotation_type_body",
            comments="line_comment block_comment",
        ),
        "rust": Language(
            extensions="rs",
            media_types="text/x-rust",
            wheel="tree-sitter-rust",
            functions="function_item struct_item enum_item union_item macro_definition",
            classes="impl_item trait_item",
            namespaces="mod_item",
            statements="type_item",
            imports="use_declaration extern_crate_declaration",
            bodies="declaration_list foreign_mod_item",
            comments="line_comment block_comment",
            attributes="attribute_item",
            names={"impl_item": "type"},
            identifiers="type_identifier scoped_type_identifier",
        ),
        "c": _C,
        "cpp": replace(
            _C,
            # What is C in a header is C++ too, near enough for an outline.
            extensions="cpp cc cxx c++ h hh hpp hxx h++ ipp tpp inl",
            media_types="text/x-c++",
            wheel="tree-sitter-cpp",
            functions="function_definition concept_definition",
            classes="class_specifier struct_specifier union_specifier enum_specifier",
            namespaces="namespace_definition",
            statements="alias_declaration",
            wrappers=_C.wrappers + " template_declaration",
            sign=r"[{=]",
            identifiers=_C.identifiers + " qualified_identifier nested_namespace_specifier destructor_name "
            "operator_name operator_cast",
        ),
        "csharp": Language(
            extensions="cs csx",
            media_types="text/x-csharp",
            wheel="tree-sitter-c-sharp",
            functions="method_declaration constructor_declaration destructor_declaration property_declaration "
            "indexer_declaration operator_declaration conversion_operator_declaration event_declaration "
            "local_function_statement",
            classes="class_declaration struct_declaration interface_declaration record_declaration "
            "enum_declaration",
            namespaces="namespace_declaration",
            statements="delegate_declaration",
            imports="using_directive extern_alias_directive",
            bodies="declaration_list enum_member_declaration_list preproc_if preproc_elif preproc_else",
            wrappers="global_statement",
            names={"conversion_operator_declaration": "type", "operator_declaration": "operator"},
        ),
        "ruby": Language(
            extensions="rb rake gemspec ru",
            media_types="text/x-ruby",
            wheel="tree-sitter-ruby",
            functions="method singleton_method",
            classes="class singleton_class",
            namespaces="module",
            bodies="body_statement do_block",
            wrappers="assignment call argument_list",
            sign=r"\bdef\b",
            names={"singleton_class": "value", "singleton_method": "object name", "assignment": "left"},
        ),
        "php": Language(
            extensions="php php3 php4 php5 phtml inc",
            media_types="text/x-php",
            wheel="tree-sitter-php",
            grammar="language_php",
            functions="function_definition method_declaration",
            classes="class_declaration interface_declaration trait_declaration enum_declaration",
            namespaces="namespace_definition",
            imports="namespace_use_declaration",
            bodies="declaration_list enum_declaration_list compound_statement",
        ),
        "shell": Language(
            extensions="sh bash zsh ksh bats",
            media_types="text/x-sh",
            wheel="tree-sitter-bash",
            functions="function_definition",
        ),
        "sql": Language(
            extensions="sql ddl dml",
            media_types="application/sql",
            wheel="tree-sitter-sql",
            statements="statement",
            bodies="transaction",
            comments="comment marginalia",
            names={
                "statement": "create_table create_view create_materialized_view create_function create_procedure "
                "create_trigger create_type create_sequence create_schema create_database"
            },
            identifiers="object_reference identifier",
        ),
    }
)

_BY_EXTENSION = {
    extension: name for name, language in LANGUAGES.items() for extension in language.extensions.split()
}
_BY_MEDIA_TYPE = {
    media_type: name for name, language in LANGUAGES.items() for media_type in language.media_types.split()
}


def language_of(media_type: str | None, path: str | None) -> str | None:
    """Name of a document's language: by the extension of its path, else by its media type; None if by neither."""
    stem, dot, extension = (path or "").rpartition("/")[2].rpartition(".")
    by_extension = _BY_EXTENSION.get(extension.lower()) if stem and dot else None
    return by_extension or _BY_MEDIA_TYPE.get(media_type or "")


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language as its parser needs it, with the numbers of kinds of nodes for their names.

    Args:
        language: What the parser is made with.
        roles: The kinds that matter.
        inner: Those of them that are or lead to a definition.
        names: The fields that name a kind.
        identifiers: The kinds that are names.
        sign: What every definition in a wrapper holds.
    """

    language: tree_sitter.Language
    roles: Mapping[int, Role]
    inner: frozenset[int]
    names: Mapping[int, Sequence[str]]
    identifiers: frozenset[int]
    sign: re.Pattern[bytes]


@cache
def grammar_of(name: str) -> Grammar:
    """Grammar of a language, loaded once in a process.

    Raises:
        ConfigError: If the language is unknown or its grammar is not installed.
    """
    if name not in LANGUAGES:
        raise ConfigError("language", name, f"is unknown; known are {', '.join(LANGUAGES)}")
    table = LANGUAGES[name]
    try:
        from tree_sitter import Language

        module = import_module(table.wheel.replace("-", "_"))
        language = Language(getattr(module, table.grammar)())
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError("language", name, f"{error}; needs pip install {table.wheel}") from error
    try:
        return _numbered(table, language)
    except KeyError as error:
        message = f"its grammar has no nodes {error}; needs another version of {table.wheel}"
        raise ConfigError("language", name, message) from error


def _numbered(table: Language, language: tree_sitter.Language) -> Grammar:
    numbers: dict[str, list[int]] = {}
    for number in range(language.node_kind_count):
        if language.node_kind_is_named(number):
            numbers.setdefault(language.node_kind_for_id(number) or "", []).append(number)

    roles = {n: role for role in Role for kind in getattr(table, role.value).split() for n in numbers[kind]}
    names = {n: ["name"] for n, role in roles.items() if role in _DEFINITIONS}
    names |= {n: fields.split() for kind, fields in table.names.items() for n in numbers[kind]}
    identifiers = frozenset(n for kind in table.identifiers.split() for n in numbers[kind])
    # What stands in the rest of broken code stands for itself.
    roles[_ERROR_KIND] = Role.BODY
    inner = frozenset(n for n, role in roles.items() if role in _TO_DEFINITIONS)
    return Grammar(language, roles, inner, names, identifiers, re.compile(table.sign.encode()))
