"""Proof of a committed table: what can be known again from its files, and from its sources, is compared.

One pass, shard by shard. All files of a shard are sorted by document id, so that one merge brings together
all that the table holds of a document. Documents that are read again are put on disk by shard, and join in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from transforms.parsers import ParseSettings
from transforms.sources import ReadSettings, SourceFile
from transforms.tokenizers import Tokenizer
from transforms.verify.proof import Proof
from transforms.verify.report import CHECKS, Fault, VerifyReport

__all__ = ["CHECKS", "Fault", "VerifyReport", "verify"]


def verify(
    output: str,
    inputs: Sequence[SourceFile] = (),
    read: ReadSettings | None = None,
    parse: ParseSettings | None = None,
    tokenizers: Iterable[Tokenizer] = (),
) -> VerifyReport:
    """Prove a committed table once more.

    Documents are compared with their texts if inputs are given or the ledger keeps the texts. Inputs take
    temporary disk space for all of their text, and memory for that of one shard.

    Args:
        output: Root of the table.
        inputs: All files that the documents of the source `read.source_name` came from.
        read: How they were read.
        parse: How they were parsed.
        tokenizers: Tokenizers that cannot be had by their name, such as those of Hugging Face.

    Raises:
        ConfigError: If `output` is no place that can hold a table.
    """
    proof = Proof(output, tokenizers)
    with TemporaryDirectory(prefix="chunkmill-verify-") as folder:
        proof.run(inputs, read or ReadSettings(), parse or ParseSettings(), Path(folder))
    return proof.report()
