"""Chunkers to compare, ours and those of peers, each at its defaults but for size, overlap and tokenizer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from benchmarks.reference import ENCODING, reference
from transforms.chunkers import get_chunker
from transforms.records import Document, Span
from transforms.tokenizers import Engine
from transforms.tokenizers.encodings import encoding_tokenizer

SIZE = 512
Piece = tuple[str, "tuple[Span, ...] | None"]


@dataclass(frozen=True)
class Cutter:
    """A chunker.

    Args:
        cut: Cuts a document in the cheapest way that gives texts. This is what is timed.
        pieces: Cuts a document into texts, with their spans in code points if the chunker can tell them.
    """

    cut: Callable[[Document], object]
    pieces: Callable[[Document], list[Piece]]


def ours(strategy: str, overlap: int, engine: Engine, *, fresh: bool) -> Cutter:
    """A strategy of ours.

    Args:
        strategy: Its name.
        overlap: Tokens of overlap.
        engine: What encodes.
        fresh: Whether to give it a tokenizer of its own, which takes seconds to load; the one of the process
            remembers words that it has encoded before.
    """
    load = encoding_tokenizer.__wrapped__ if fresh else encoding_tokenizer
    tokenizer = load(ENCODING, engine)
    chunker = get_chunker(strategy, chunk_size=SIZE, chunk_overlap=overlap, tokenizer=tokenizer)

    def pieces(document: Document) -> list[Piece]:
        chunks = chunker.chunk(document)
        return [(chunk.text, None if chunk.is_derived else chunk.spans) for chunk in chunks]

    return Cutter(chunker.chunk, pieces)


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


def llama_index_sentence(overlap: int) -> Cutter:
    """llama-index-core, SentenceSplitter; its own tokenizer is cl100k_base by tiktoken."""
    from llama_index.core import Document as Node
    from llama_index.core.node_parser import SentenceSplitter

    reference()
    splitter = SentenceSplitter(chunk_size=SIZE, chunk_overlap=overlap)

    def pieces(document: Document) -> list[Piece]:
        nodes = splitter.get_nodes_from_documents([Node(text=document.text)])
        spans = [(cast("Any", node).start_char_idx, cast("Any", node).end_char_idx) for node in nodes]
        return [
            (cast("Any", node).text, (span if None not in span else (-1, -1),))
            for node, span in zip(nodes, spans, strict=True)
        ]

    return Cutter(lambda document: splitter.split_text(document.text), pieces)


def _chonkie(splitter: Any) -> Cutter:
    def pieces(document: Document) -> list[Piece]:
        return [
            (chunk.text, ((chunk.start_index, chunk.end_index),)) for chunk in splitter.chunk(document.text)
        ]

    return Cutter(lambda document: splitter.chunk(document.text), pieces)


def chonkie_recursive(overlap: int) -> Cutter:
    """chonkie, RecursiveChunker, which has no overlap."""
    from chonkie import RecursiveChunker

    if overlap:
        raise NotImplementedError("has no overlap")
    return _chonkie(RecursiveChunker(tokenizer=cast("Any", reference()), chunk_size=SIZE))


def chonkie_token(overlap: int) -> Cutter:
    """chonkie, TokenChunker."""
    from chonkie import TokenChunker

    tokenizer = cast("Any", reference())
    return _chonkie(TokenChunker(tokenizer=tokenizer, chunk_size=SIZE, chunk_overlap=overlap))


def semchunk(overlap: int) -> Cutter:
    """semchunk, chunkerify; a new one each time, since it remembers every text that it has counted."""
    from semchunk import chunkerify

    splitter = cast("Any", chunkerify(reference(), SIZE))

    def pieces(document: Document) -> list[Piece]:
        chunks, offsets = splitter(document.text, offsets=True, overlap=overlap or None)
        return [(chunk, (span,)) for chunk, span in zip(chunks, offsets, strict=True)]

    return Cutter(lambda document: splitter(document.text, overlap=overlap or None), pieces)


def semantic_text_splitter(overlap: int) -> Cutter:
    """semantic-text-splitter, TextSplitter; cl100k_base is compiled into it."""
    from semantic_text_splitter import TextSplitter

    splitter = TextSplitter.from_tiktoken_model("gpt-4", SIZE, overlap=overlap)

    def pieces(document: Document) -> list[Piece]:
        return [_from_start(chunk, start) for start, chunk in splitter.chunk_indices(document.text)]

    return Cutter(lambda document: splitter.chunks(document.text), pieces)


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


def _from_start(text: str, start: int) -> Piece:
    return text, ((start, start + len(text)),)


PEERS: Mapping[str, Callable[[int], Cutter]] = {
    "langchain RecursiveCharacter": langchain_recursive,
    "langchain Token": langchain_token,
    "llama-index Sentence": llama_index_sentence,
    "chonkie Recursive": chonkie_recursive,
    "chonkie Token": chonkie_token,
    "semchunk": semchunk,
    "semantic-text-splitter": semantic_text_splitter,
    "haystack Recursive": haystack_recursive,
}
