"""Chunkers of others, each at its defaults but for size, overlap and tokenizer, by what they are for."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from unittest import mock

from benchmarks.cutters import SIZE, Cutter, Piece
from benchmarks.reference import ENCODING, reference
from transforms.records import Document

# What semantic-text-splitter calls cl100k_base.
_MODEL = "gpt-4"
_NO_OVERLAP = "has no overlap"


def _from_start(text: str, start: int) -> Piece:
    return Piece(text, ((start, start + len(text)),))


# For any text.


def _langchain(kind: str, overlap: int) -> Cutter:
    import langchain_text_splitters

    reference()
    make = getattr(langchain_text_splitters, kind).from_tiktoken_encoder
    splitter = make(ENCODING, chunk_size=SIZE, chunk_overlap=overlap)
    telling = make(ENCODING, chunk_size=SIZE, chunk_overlap=overlap, add_start_index=True)

    def pieces(document: Document) -> list[Piece]:
        found = telling.create_documents([document.text])
        return [_from_start(piece.page_content, piece.metadata["start_index"]) for piece in found]

    return Cutter(lambda document: splitter.split_text(document.text), pieces)


def langchain_recursive(overlap: int) -> Cutter:
    """langchain-text-splitters, RecursiveCharacterTextSplitter."""
    return _langchain("RecursiveCharacterTextSplitter", overlap)


def langchain_token(overlap: int) -> Cutter:
    """langchain-text-splitters, TokenTextSplitter."""
    return _langchain("TokenTextSplitter", overlap)


def _llama_index(splitter: Any) -> Cutter:
    from llama_index.core import Document as Node

    def pieces(document: Document) -> list[Piece]:
        nodes = splitter.get_nodes_from_documents([Node(text=document.text)])
        spans = [(node.start_char_idx, node.end_char_idx) for node in nodes]
        return [
            Piece(node.text, (span if None not in span else (-1, -1),))
            for node, span in zip(nodes, spans, strict=True)
        ]

    return Cutter(lambda document: splitter.split_text(document.text), pieces)


def llama_index_sentence(overlap: int) -> Cutter:
    """llama-index-core, SentenceSplitter; its own tokenizer is cl100k_base by tiktoken."""
    from llama_index.core.node_parser import SentenceSplitter

    reference()
    return _llama_index(SentenceSplitter(chunk_size=SIZE, chunk_overlap=overlap))


def _chonkie(splitter: Any) -> Cutter:
    def pieces(document: Document) -> list[Piece]:
        found = splitter.chunk(document.text)
        return [Piece(chunk.text, ((chunk.start_index, chunk.end_index),)) for chunk in found]

    return Cutter(lambda document: splitter.chunk(document.text), pieces)


def chonkie_recursive(overlap: int) -> Cutter:
    """chonkie, RecursiveChunker."""
    from chonkie import RecursiveChunker

    if overlap:
        raise NotImplementedError(_NO_OVERLAP)
    return _chonkie(RecursiveChunker(tokenizer=cast("Any", reference()), chunk_size=SIZE))


def chonkie_sentence(overlap: int) -> Cutter:
    """chonkie, SentenceChunker."""
    from chonkie import SentenceChunker

    tokenizer = cast("Any", reference())
    return _chonkie(SentenceChunker(tokenizer=tokenizer, chunk_size=SIZE, chunk_overlap=overlap))


def chonkie_token(overlap: int) -> Cutter:
    """chonkie, TokenChunker."""
    from chonkie import TokenChunker

    tokenizer = cast("Any", reference())
    return _chonkie(TokenChunker(tokenizer=tokenizer, chunk_size=SIZE, chunk_overlap=overlap))


def semchunk(overlap: int) -> Cutter:
    """semchunk, chunkerify."""
    from semchunk import chunkerify

    splitter = cast("Any", chunkerify(reference(), SIZE))

    def pieces(document: Document) -> list[Piece]:
        chunks, offsets = splitter(document.text, offsets=True, overlap=overlap or None)
        return [Piece(chunk, (span,)) for chunk, span in zip(chunks, offsets, strict=True)]

    return Cutter(lambda document: splitter(document.text, overlap=overlap or None), pieces)


def _semantic_text_splitter(splitter: Any) -> Cutter:
    def pieces(document: Document) -> list[Piece]:
        return [_from_start(chunk, start) for start, chunk in splitter.chunk_indices(document.text)]

    return Cutter(lambda document: splitter.chunks(document.text), pieces)


def semantic_text_splitter(overlap: int) -> Cutter:
    """semantic-text-splitter, TextSplitter; cl100k_base is compiled into it."""
    from semantic_text_splitter import TextSplitter

    return _semantic_text_splitter(TextSplitter.from_tiktoken_model(_MODEL, SIZE, overlap=overlap))


def haystack_recursive(overlap: int) -> Cutter:
    """haystack-ai, RecursiveDocumentSplitter, with cl100k_base in the place of its o200k_base.

    It would download the data of its sentence tokenizer. llama-index-core ships the same data.
    """
    os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
    import llama_index.core
    import nltk
    from haystack import Document as Node
    from haystack.components.preprocessors import RecursiveDocumentSplitter

    data = str(Path(cast("str", llama_index.core.__file__)).parent / "_static" / "nltk_cache")
    if data not in nltk.data.path:
        nltk.data.path.insert(0, data)
    reference()
    splitter = RecursiveDocumentSplitter(split_length=SIZE, split_overlap=overlap, split_unit="token")
    splitter.warm_up()
    splitter.tiktoken_tokenizer = reference()

    def pieces(document: Document) -> list[Piece]:
        nodes = splitter.run([Node(content=document.text)])["documents"]
        return [_from_start(node.content, node.meta["split_idx_start"]) for node in nodes]

    return Cutter(lambda document: splitter.run([Node(content=document.text)]), pieces)


def ragflow_naive_merge(overlap: int) -> Cutter:
    """RAGFlow, naive_merge. No package has it: it is measured where a checkout of RAGFlow is on the path."""
    from rag.nlp import naive_merge

    percent = 100 * overlap // SIZE

    def cut(document: Document) -> list[str]:
        return cast("list[str]", naive_merge(document.text, chunk_token_num=SIZE, overlapped_percent=percent))

    return Cutter(cut, lambda document: [Piece(text) for text in cut(document)])


# For programs in Python.


def langchain_python(overlap: int) -> Cutter:
    """langchain-text-splitters, PythonCodeTextSplitter."""
    return _langchain("PythonCodeTextSplitter", overlap)


def llama_index_code(overlap: int) -> Cutter:
    """llama-index-core, CodeSplitter, counting tokens, with the grammar that ours uses."""
    import tree_sitter_python
    from llama_index.core.node_parser import CodeSplitter
    from tree_sitter import Language, Parser

    if overlap:
        raise NotImplementedError(_NO_OVERLAP)
    reference()
    parser = Parser(Language(tree_sitter_python.language()))
    return _llama_index(CodeSplitter("python", count_mode="token", max_tokens=SIZE, parser=parser))


def chonkie_code(overlap: int) -> Cutter:
    """chonkie, CodeChunker, which would download some hundred grammars; it is given the one that ours uses."""
    import tree_sitter_language_pack
    from chonkie import CodeChunker

    if overlap:
        raise NotImplementedError(_NO_OVERLAP)
    _give_grammar()
    with mock.patch.object(tree_sitter_language_pack, "download_all", return_value=0):
        return _chonkie(CodeChunker(tokenizer=cast("Any", reference()), chunk_size=SIZE, language="python"))


@cache
def _give_grammar() -> None:
    """Let tree-sitter-language-pack find the grammar of Python in this process, where it looks for its downloads.

    It loads a library with a function that returns the grammar. One that returns the address is all it takes.
    """
    import tree_sitter_language_pack as pack
    import tree_sitter_python

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    grammar = address(tree_sitter_python.language(), b"tree_sitter.Language")
    program = f"const void *tree_sitter_python(void) {{ return (const void *){grammar}ull; }}"
    with tempfile.TemporaryDirectory() as folder:
        pack.configure(pack.PackConfig(cache_dir=folder))
        library = Path(pack.cache_dir(), "libtree_sitter_python.so")
        library.parent.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=program.encode(), check=True, capture_output=True)
        pack.get_language("python")


def semantic_text_splitter_code(overlap: int) -> Cutter:
    """semantic-text-splitter, CodeSplitter, with the grammar that ours uses."""
    import tree_sitter_python
    from semantic_text_splitter import CodeSplitter

    grammar = tree_sitter_python.language()
    return _semantic_text_splitter(CodeSplitter.from_tiktoken_model(grammar, _MODEL, SIZE, overlap=overlap))


# For JSON.


def langchain_json(overlap: int) -> Cutter:
    """langchain-text-splitters, RecursiveJsonSplitter, which counts characters: its default of 2,000."""
    from langchain_text_splitters import RecursiveJsonSplitter

    if overlap:
        raise NotImplementedError(_NO_OVERLAP)
    splitter = RecursiveJsonSplitter()

    def cut(document: Document) -> list[str]:
        return cast("list[str]", splitter.split_text(json.loads(document.text), ensure_ascii=False))

    return Cutter(
        cut,
        lambda document: [Piece(text) for text in cut(document)],
        rewritten=lambda text: json.dumps(json.loads(text), ensure_ascii=False),
    )


# For Markdown.


def langchain_markdown(overlap: int) -> Cutter:
    """langchain-text-splitters, MarkdownTextSplitter."""
    return _langchain("MarkdownTextSplitter", overlap)


def langchain_markdown_header(overlap: int) -> Cutter:
    """langchain-text-splitters, MarkdownHeaderTextSplitter: by headings of any level, which it keeps; no budget."""
    from langchain_text_splitters import MarkdownHeaderTextSplitter

    if overlap:
        raise NotImplementedError(_NO_OVERLAP)
    levels = [("#" * level, str(level)) for level in range(1, 7)]
    splitter = MarkdownHeaderTextSplitter(levels, strip_headers=False)

    def pieces(document: Document) -> list[Piece]:
        return [Piece(section.page_content) for section in splitter.split_text(document.text)]

    return Cutter(lambda document: splitter.split_text(document.text), pieces)


def semantic_text_splitter_markdown(overlap: int) -> Cutter:
    """semantic-text-splitter, MarkdownSplitter."""
    from semantic_text_splitter import MarkdownSplitter

    return _semantic_text_splitter(MarkdownSplitter.from_tiktoken_model(_MODEL, SIZE, overlap=overlap))


def docling_hybrid(overlap: int) -> Cutter:
    """docling, HybridChunker, with its parse of Markdown; texts with their headings, as it would embed them."""
    from docling.backend.md_backend import MarkdownDocumentBackend
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.document import InputDocument
    from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
    from docling_core.transforms.chunker.tokenizer.openai import OpenAITokenizer

    if overlap:
        raise NotImplementedError(_NO_OVERLAP)
    chunker = HybridChunker(tokenizer=OpenAITokenizer(tokenizer=reference(), max_tokens=SIZE))

    def cut(document: Document) -> list[str]:
        source = InputDocument(
            path_or_stream=BytesIO(document.text.encode()),
            format=InputFormat.MD,
            backend=MarkdownDocumentBackend,
            filename="document.md",
        )
        parsed = cast("Any", source._backend).convert()
        return [chunker.contextualize(chunk) for chunk in chunker.chunk(parsed)]

    return Cutter(cut, lambda document: [Piece(text) for text in cut(document)], rewritten=lambda text: text)


Peers = Mapping[str, Callable[[int], Cutter]]

FOR_TEXT: Peers = {
    "langchain RecursiveCharacter": langchain_recursive,
    "langchain Token": langchain_token,
    "llama-index Sentence": llama_index_sentence,
    "chonkie Recursive": chonkie_recursive,
    "chonkie Sentence": chonkie_sentence,
    "chonkie Token": chonkie_token,
    "semchunk": semchunk,
    "semantic-text-splitter": semantic_text_splitter,
    "haystack Recursive": haystack_recursive,
    "RAGFlow naive_merge": ragflow_naive_merge,
}
FOR_CODE: Peers = {
    "langchain PythonCode": langchain_python,
    "llama-index Code": llama_index_code,
    "chonkie Code": chonkie_code,
    "semantic-text-splitter Code": semantic_text_splitter_code,
}
FOR_JSON: Peers = {"langchain RecursiveJson": langchain_json}
FOR_MARKDOWN: Peers = {
    "langchain Markdown": langchain_markdown,
    "langchain MarkdownHeader": langchain_markdown_header,
    "semantic-text-splitter Markdown": semantic_text_splitter_markdown,
    "docling Hybrid": docling_hybrid,
}
