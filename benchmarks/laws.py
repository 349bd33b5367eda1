"""The laws over a whole corpus: every strategy at its defaults on every document, and what breaks a law.

Whatever can be seen from outside is seen anew here, with tiktoken and a pattern for grapheme clusters.
"""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import regex

from benchmarks import corpus
from benchmarks.isolated import say
from benchmarks.reference import ENCODING, reference
from benchmarks.report import Options, Table, main, note
from transforms.chunkers import Chunker, get_chunker
from transforms.records import Chunk, Document, DocumentChunks

_PROCESSES = 2
# Beyond the largest document that the job takes.
_LARGEST = 2**30
_QUICK_EVERY = 100
_NOTE_EVERY = 250
_PATIENCE_CPU_SECONDS = 60
_TOLD = 3
_REPLACEMENT = "\ufffd"
_CLUSTER = regex.compile(r"\X")
# Where a cluster ends for certain, whatever stands before. Looked for near a cut first, then further before it.
_CERTAIN = re.compile(r"\n|(?!\r\n)[\x00-\x7f](?=[\x00-\x7f])")
_NEAR = (64, 4096)


@dataclass
class Breaches:
    """What one strategy makes of a corpus. All but the first four must be 0.

    Attributes:
        documents: Documents that were cut.
        skipped: Documents that are on a list of those to leave out.
        chunks: Their chunks.
        marked: Chunks over the budget that the strategy promises to keep whole, and marks.
        over: Chunks over the budget that are not marked, recounted by tiktoken.
        miscounted: Chunks with another count of tokens than tiktoken's.
        lost: Characters, white space apart, in no span of a chunk, though no setting removes them.
        wrong: Chunks whose text is not what the document has at their spans, unless it is marked as derived.
        split: Cuts inside a grapheme cluster.
        introduced: U+FFFD in chunks of documents that have none.
        unordered: Chunks whose start or end does not come after that of the chunk before.
        blank: Chunks of white space alone, and blank documents with chunks.
        raised: Documents that could not be cut, by the error.
        seconds: CPU seconds for cutting.
        told: The first documents with a breach.
    """

    documents: int = 0
    skipped: int = 0
    chunks: int = 0
    marked: int = 0
    over: int = 0
    miscounted: int = 0
    lost: int = 0
    wrong: int = 0
    split: int = 0
    introduced: int = 0
    unordered: int = 0
    blank: int = 0
    raised: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    told: list[str] = field(default_factory=list)

    @property
    def laws(self) -> Mapping[str, int]:
        """What must be 0."""
        names = ("over", "miscounted", "lost", "wrong", "split", "introduced", "unordered", "blank")
        return {**{name: getattr(self, name) for name in names}, "raised": self.raised.total()}

    def __iadd__(self, other: Breaches) -> Breaches:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        return self

    def add(self, result: DocumentChunks, chunk_size: int) -> None:
        """Look at the chunks of one more document.

        Args:
            result: The document with its chunks.
            chunk_size: Budget of a chunk.
        """
        if result.status == "skipped":
            self.skipped += 1
            return
        text, chunks = result.document.text, result.chunks
        self.documents += 1
        self.chunks += len(chunks)
        for chunk in chunks:
            tokens = len(reference().encode_ordinary(chunk.text))
            self.miscounted += tokens != chunk.token_count
            self.marked += chunk.over_budget
            self.over += tokens > chunk_size and not chunk.over_budget
            self.wrong += not chunk.is_derived and chunk.text != _slices(text, chunk)
            self.blank += not chunk.text.strip()
        self.blank += bool(chunks) and not text.strip()
        self.lost += max(0, _lost(text, chunks) - result.removed)
        cuts = {cut for chunk in chunks for span in chunk.spans for cut in span}
        self.split += sum(not ends_cluster(text, cut) for cut in cuts)
        if _REPLACEMENT not in text:
            self.introduced += sum(chunk.text.count(_REPLACEMENT) for chunk in chunks)
        self.unordered += sum(
            not (before.start < after.start and before.end < after.end) for before, after in pairwise(chunks)
        )


def _slices(text: str, chunk: Chunk) -> str:
    return "".join(text[start:end] for start, end in chunk.spans)


def _lost(text: str, chunks: Sequence[Chunk]) -> int:
    held = lost = 0
    for start, end in sorted(span for chunk in chunks for span in chunk.spans):
        lost += sum(map(len, text[held:start].split())) if held < start else 0
        held = max(held, end)
    return lost + sum(map(len, text[held:].split()))


def ends_cluster(text: str, cut: int) -> bool:
    """Whether a grapheme cluster ends at a place of a text.

    Args:
        text: The text.
        cut: The place, in code points.
    """
    start = _certain_end(text, cut)
    if start == cut or cut == len(text):
        return True
    for cluster in _CLUSTER.finditer(text, start):
        if cluster.end() >= cut:
            return cluster.end() == cut
    return False


def _certain_end(text: str, cut: int) -> int:
    """A place at or before `cut` where a cluster ends for certain."""
    for reach in (*_NEAR, cut):
        begin = max(0, cut - reach)
        ends = [found.end() for found in _CERTAIN.finditer(text, begin, cut)]
        if ends:
            return ends[-1]
    return 0


def run(options: Options) -> list[Table]:
    """Every strategy over every document."""
    every = _QUICK_EVERY if options.quick else 1
    # A tokenizer that runs threads is loaded in the processes that use it.
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as pool:
        parts = [
            pool.submit(_look, options.documents, options.strategies, place * every, _PROCESSES * every)
            for place in range(_PROCESSES)
        ]
        found = {name: Breaches() for name in options.strategies}
        for part in parts:
            for name, breaches in part.result().items():
                found[name] += breaches
    which = f"one document in {every}" if options.quick else "all documents"
    about = (
        f"Every strategy at its defaults over {which} of the corpus, recounted by tiktoken's {ENCODING}. CPU: of "
        f"cutting alone, by tokenizers that have met the text before. Marked: chunks over the budget by a promise of "
        f"the strategy; everything to the right of them must be 0. Lost: characters, white space apart, in no span. "
        f"Wrong: text that is not what the document has there, unless marked as derived. Split: cuts inside a "
        f"grapheme cluster (UAX #29). Unordered: starts or ends that do not ascend. Raised: not cut, or not within "
        f"{_PATIENCE_CPU_SECONDS} s of CPU."
    )
    told = [f"- `{name}`: {text}" for name, breaches in found.items() for text in breaches.told[:_TOLD]]
    if told:
        about += "\n\nThe first breaches:\n\n" + "\n".join(told)
    return [Table("laws", "Laws", about, _HEADER, [_row(*item) for item in found.items()])]


_HEADER = (
    " strategy",
    "documents",
    "skipped",
    "chunks",
    "CPU seconds",
    "marked",
    "over budget",
    "miscounted",
    "characters lost",
    "wrong text",
    "clusters split",
    "U+FFFD",
    "unordered",
    "blank",
    " raised",
)


def _row(name: str, found: Breaches) -> list[str]:
    *counts, raised = [f"**{times:,}**" if times else "0" for times in found.laws.values()]
    if found.raised:
        raised += f": {next(iter(found.raised))}"
    facts = [f"{found.documents:,}", f"{found.skipped:,}", f"{found.chunks:,}", f"{found.seconds:.0f}"]
    return [f"`{name}`", *facts, f"{found.marked:,}", *counts, raised]


class _TooLongError(Exception):
    """A document takes too long."""


def _give_up(*_: object) -> None:
    raise _TooLongError(f"more than {_PATIENCE_CPU_SECONDS} s of CPU")


def _look(folder: Path, strategies: Sequence[str], first: int, step: int) -> dict[str, Breaches]:
    """What the strategies make of every `step`-th document, each parsed once for all of them."""
    signal.signal(signal.SIGVTALRM, _give_up)
    chunkers = [get_chunker(name) for name in strategies]
    found = {name: Breaches() for name in strategies}
    for place, text in enumerate(corpus.texts(folder, _LARGEST)):
        if place % step != first:
            continue
        if place // step % _NOTE_EVERY == 0:
            note(f"laws: document {place + 1}")
        [document] = corpus.parsed([text])
        for chunker in chunkers:
            _check(chunker, document, found[chunker.name])
    return found


def _check(chunker: Chunker, document: Document, found: Breaches) -> None:
    before, start = found.laws, time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, _PATIENCE_CPU_SECONDS)
    try:
        result = chunker.chunk_document(document)
    except Exception as error:
        found.raised[say(error)] += 1
    else:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        found.seconds += time.process_time() - start
        found.add(result, chunker.chunk_size)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    more = {law: times - before[law] for law, times in found.laws.items() if times > before[law]}
    if more and len(found.told) < _TOLD:
        what = ", ".join(f"{times:,} {law}" for law, times in more.items())
        found.told.append(f"{_name(document)}: {what}")


def _name(document: Document) -> str:
    return document.source.uri or document.document_id


if __name__ == "__main__":
    main({"laws": run})
