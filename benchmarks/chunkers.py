"""CPU of chunkers against a plain pass of tiktoken over the same documents, and whether their chunks are right."""

from __future__ import annotations

import contextlib
import logging
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import corpus, cutters
from benchmarks.corpus import Text
from benchmarks.correctness import Faults
from benchmarks.cutters import Cutter
from benchmarks.families import FAMILIES, FAST, Family
from benchmarks.isolated import IsolatedError, isolated, say
from benchmarks.reference import cpu_seconds, plain_pass, reference
from benchmarks.report import Options, Table, draw, main, note, unlog
from transforms.records import Document
from transforms.tokenizers import Engine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WITH_PARSE = "with the parse"
# Of the documents that are measured, as many others are cut before the clock starts, and a few are left over for it.
_WARM_UP = 6
_PATIENCE_SECONDS = 120
_SLOW_CPU_SECONDS = 6.0


@dataclass(frozen=True)
class _Extent:
    """How much is done: of ours the fast engine, without overlap and parse, in more laps than all else."""

    budget: int
    laps: int
    other_laps: int
    peer_budget: int
    peer_laps: int
    peer_seconds: float


_QUICK = _Extent(100_000, 1, 1, 60_000, 1, 5.0)


def _full(budget: int) -> _Extent:
    return _Extent(budget, 5, 3, budget // 6, 2, 10.0)


@dataclass(frozen=True)
class _Documents:
    """What is cut.

    Args:
        all: What is measured for ours.
        part: What is measured for peers.
        others: Documents that are not measured; what is met again in any text is no news after them.
    """

    all: list[Document]
    part: list[Document]
    others: list[Document]


@dataclass
class Entry:
    """A chunker in the race.

    Args:
        name: What the table calls it.
        overlap: Tokens of overlap.
        make: Makes it.
        documents: What it cuts; once `check` has run, what it managed to cut.
        others: What it cuts before the clock starts.
        laps: How often it is timed.
        seconds: CPU after which `check` leaves the rest of the documents out.

    Attributes:
        cutter: The chunker; None if it could not be made.
        failure: Why it is out of the race; empty if it is in.
        faults: What is wrong with its chunks.
        ratios: Its CPU by that of the plain pass, lap by lap.
        best: Its CPU in its best lap.
    """

    name: str
    overlap: int
    make: Callable[[], Cutter]
    documents: Sequence[Document]
    others: Sequence[Document]
    laps: int
    seconds: float = float("inf")
    cutter: Cutter | None = None
    failure: str = ""
    faults: Faults = field(default_factory=Faults)
    ratios: list[float] = field(default_factory=list)
    best: float = float("inf")

    def check(self) -> None:
        """Cut everything once, untimed, and look at the chunks."""
        try:
            cutter = self.cutter = self.make()
            self.faults, places = isolated(lambda: self._look(cutter), _PATIENCE_SECONDS)
        except Exception as error:
            self.failure = say(error)
            return
        self.documents = [self.documents[place] for place in places]
        if not places:
            self.failure = f"cuts nothing: {next(iter(self.faults.raised), 'there are no documents')}"

    def _look(self, cutter: Cutter) -> tuple[Faults, list[int]]:
        """What is wrong with the chunks, and the places of the documents that could be cut."""
        faults, places, spent = Faults(), [], 0.0
        for place, document in enumerate(self.documents):
            start = time.process_time()
            try:
                pieces = cutter.pieces(document)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # the panics of tiktoken are no Exception
                faults.raised[say(error)] += 1
                continue
            spent += time.process_time() - start
            if pieces is None:
                faults.skipped += 1
                continue
            faults.add(document.text, pieces, self.overlap, cutter.rewritten)
            places.append(place)
            if spent > self.seconds:
                break
        return faults, places

    def lap(self) -> None:
        """Time the plain pass, and right after it the chunker, over the same documents; what is slow only once."""
        is_slow = _SLOW_CPU_SECONDS < self.best < float("inf")
        if self.failure or is_slow or len(self.ratios) == self.laps or self.cutter is None:
            return
        try:
            plain, spent = isolated(partial(self._time, self.cutter.cut), _PATIENCE_SECONDS)
        except IsolatedError as error:
            self.failure = say(error)
            return
        self.ratios.append(spent / plain)
        self.best = min(self.best, spent)

    def _time(self, cut: Callable[[Document], object]) -> tuple[float, float]:
        def work() -> None:
            for document in self.documents:
                cut(document)

        for other in self.others:
            with contextlib.suppress(Exception):
                cut(other)
        plain = cpu_seconds(lambda: plain_pass(document.text for document in self.documents))
        return plain, cpu_seconds(work)

    def row(self) -> list[str]:
        """Its row of the table."""
        if self.failure:
            return [self.name, str(self.overlap), self.failure, *[""] * (len(_HEADER) - 3)]
        faults, size = self.faults, corpus.megabytes(self.documents)
        return [
            self.name,
            str(self.overlap),
            f"{statistics.median(self.ratios):.2f}",
            f"{min(self.ratios):.2f} to {max(self.ratios):.2f}",
            str(len(self.ratios)),
            f"{size / self.best:.1f}",
            f"{size:.1f}",
            f"{faults.chunks:,}",
            _share(faults.over, faults.chunks)
            + f", {_share(faults.marked, faults.chunks)} marked" * bool(faults.marked),
            f"{faults.lost:,}",
            f"{faults.introduced:,}",
            "none told" if faults.wrong is None else f"{faults.wrong:,}",
            _left_out(faults),
        ]


_HEADER = (
    " chunker",
    "overlap",
    "CPU ÷ tiktoken",
    "range",
    "laps",
    "MB per CPU second",
    "MB",
    "chunks",
    "over budget",
    "characters lost",
    "U+FFFD",
    "wrong offsets",
    " documents not cut",
)
_COLOURS = {
    ("ours", 0): "#1f77b4",
    ("ours", 64): "#9ecae1",
    ("peers", 0): "#888888",
    ("peers", 64): "#cccccc",
}


def _share(some: int, whole: int) -> str:
    return f"{some / max(1, whole):.2%}" if some else "0"


def _left_out(faults: Faults) -> str:
    told = [f"{faults.skipped} on its list"] * bool(faults.skipped)
    told += [f"{times} raise {problem}" for problem, times in faults.raised.most_common(1)]
    return "; ".join(told) or "0"


def run(options: Options) -> list[Table]:
    """The race of every family."""
    # Both must be set before the engines start; and what peers log is no part of their work.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    logging.disable(logging.CRITICAL)
    extent = _QUICK if options.quick else _full(options.budget)
    everything = list(corpus.texts(options.documents))
    races = [(family, _documents(family, everything, extent)) for family in _chosen(options)]
    # What every lap would copy is small without it.
    del everything
    reference()
    try:
        return [_race(family, documents, extent, options) for family, documents in races]
    finally:
        logging.disable(logging.NOTSET)


def _chosen(options: Options) -> list[Family]:
    """The families with those of their strategies that are asked for, if any are."""
    chosen = [
        replace(family, strategies=[name for name in family.strategies if name in options.strategies])
        for family in FAMILIES
    ]
    return [family for family in chosen if family.strategies]


def _documents(family: Family, everything: Sequence[Text], extent: _Extent) -> _Documents:
    """What a family cuts: about as much as it may, and not all that there is."""
    whole = [text for text in everything if family.takes(text)]
    most = sum(text.size for text in whole) * _WARM_UP // (_WARM_UP + 1)
    budget = min(int(extent.budget * family.share), most)
    chosen = corpus.sample(whole, budget)
    part = corpus.sample(chosen, min(int(extent.peer_budget * family.share), budget))
    known = {text.document_id for text in chosen}
    others = corpus.sample([text for text in whole if text.document_id not in known], budget // _WARM_UP)
    return _Documents(*(_parsed(family, texts) for texts in (chosen, part, others)))


def _parsed(family: Family, texts: Sequence[Text]) -> list[Document]:
    return [document for document in corpus.parsed(family.form(texts)) if family.has(document)]


def _race(family: Family, documents: _Documents, extent: _Extent, options: Options) -> Table:
    entries = [*_ours(family, documents, extent), *_peers(family, documents, extent)]
    for entry in entries:
        note(f"{family.name}: check {entry.name}, overlap {entry.overlap}")
        entry.check()
    for lap in range(max(entry.laps for entry in entries)):
        note(f"{family.name}: lap {lap + 1}")
        for entry in entries:
            entry.lap()
    running = [entry for entry in entries if entry.ratios]
    name = f"chunkers_{family.name}"
    height = 1.8 + 0.24 * len({entry.name for entry in running})
    draw(options.output / f"{name}.png", family.title, lambda axis: _bars(axis, running), (9, height))
    return Table(
        name, family.title, _about(family, documents, extent), _HEADER, [entry.row() for entry in entries]
    )


def _ours(family: Family, documents: _Documents, extent: _Extent) -> list[Entry]:
    unparsed, others = (
        [replace(document, blocks=None) for document in parsed]
        for parsed in (documents.all, documents.others)
    )

    def entry(strategy: str, overlap: int, engine: Engine, parse: bool = False) -> Entry:
        return Entry(
            f"**{strategy}**, {engine}" + f", {_WITH_PARSE}" * parse,
            overlap,
            partial(cutters.ours, strategy, overlap, engine),
            unparsed if parse else documents.all,
            others if parse else documents.others,
            extent.laps if engine == FAST and not (overlap or parse) else extent.other_laps,
        )

    names = family.strategies
    entries = [entry(name, overlap, FAST) for name in names for overlap in family.overlaps]
    if any(document.blocks for document in documents.all):
        entries += [entry(name, 0, FAST, parse=True) for name in names]
    slower = [engine for engine in family.engines if engine != FAST]
    return entries + [entry(name, 0, engine) for engine in slower for name in names]


def _peers(family: Family, documents: _Documents, extent: _Extent) -> list[Entry]:
    few = documents.others[: len(documents.part) // _WARM_UP]
    return [
        Entry(
            name,
            overlap,
            partial(make, overlap),
            documents.part,
            few,
            extent.peer_laps,
            extent.peer_seconds,
        )
        for name, make in family.peers.items()
        for overlap in family.overlaps
    ]


def _about(family: Family, documents: _Documents, extent: _Extent) -> str:
    types = len({document.media_type for document in documents.all})
    kinds = f" of {types} media types" if types > 1 else ""
    size = corpus.megabytes(documents.all)
    having = corpus.megabytes([document for document in documents.all if document.blocks])
    parse = (
        f"The blocks of Markdown and HTML ({having / size:.0%} of it) are found beforehand or, {_WITH_PARSE}, by "
        f"the chunker."
        if having
        else "There are no blocks to find beforehand; a syntax tree is the chunker's own work."
    )
    peers = (
        f" Peers: {corpus.megabytes(documents.part):.1f} MB of the same, or as much as they cut in "
        f"{extent.peer_seconds:.0f} s of CPU; each in its cheapest call, at its defaults, with its own parse, and with "
        f"tiktoken or what it brings."
        if family.peers
        else ""
    )
    return (
        f"{family.about[0].upper()}{family.about[1:]}: {len(documents.all):,}{kinds}, {size:.1f} MB. "
        f"cl100k_base, {cutters.SIZE} tokens a chunk. Ours in bold, with the engine that encodes. {parse}{peers}\n\n"
        f"CPU ÷ tiktoken: its CPU by that of a plain `tiktoken.encode_ordinary` pass over the same documents right "
        f"before it in the same process; the median of its laps, all chunkers in every lap, each lap in a fresh "
        f"copy of the process, so that nothing is remembered, and after a warm-up with other documents than those "
        f"measured. What takes more than {_SLOW_CPU_SECONDS:.0f} s is timed once. Over budget: recounted by tiktoken; "
        f"marked, if the chunker tells so itself. Characters lost: not white space, in no chunk, the chunks aligned "
        f"in order and in favour of the chunker. Wrong offsets: chunks that are not what the text holds there."
        f"{_remarks(family)}"
    )


def _remarks(family: Family) -> str:
    remarks = {
        "whole": " `whole` promises one chunk, whatever its size.",
        "paper": " `paper` promises a whole abstract.",
        "table_rows": " Rows are written anew as `Row 0, column: value`, and stand for the span that they were in.",
        "langchain RecursiveJson": " RecursiveJsonSplitter counts characters, 2,000 a chunk, and writes JSON anew; "
        "lost are the words that its chunks have less often than the text.",
        "langchain MarkdownHeader": " MarkdownHeaderTextSplitter has no budget.",
        "docling Hybrid": " HybridChunker takes the markup away; lost are the words that its chunks have less "
        "often than the text, such as addresses of links.",
        "chonkie Code": " chonkie's CodeChunker gets the grammar that it would download.",
        "RAGFlow naive_merge": " RAGFlow is in no package index: its row needs a checkout on the path.",
    }
    return "".join(remark for name, remark in remarks.items() if name in {*family.strategies, *family.peers})


def _bars(axis: Axes, entries: Sequence[Entry]) -> None:
    names = list(dict.fromkeys(entry.name for entry in entries))
    paired = any(entry.overlap for entry in entries)
    for entry in entries:
        kind = "ours" if entry.name.startswith("**") else "peers"
        place = len(names) - names.index(entry.name) + paired * (-0.2 if entry.overlap else 0.2)
        ratio = statistics.median(entry.ratios)
        axis.barh(place, ratio, 0.38 if paired else 0.7, color=_COLOURS[kind, entry.overlap])
        axis.text(ratio * 1.04, place, f"{ratio:.2f}", va="center", fontsize=7)
    present = {("ours" if entry.name.startswith("**") else "peers", entry.overlap) for entry in entries}
    for (kind, overlap), colour in _COLOURS.items():
        if (kind, overlap) in present:
            axis.barh(0, 0, color=colour, label=kind + f", overlap {overlap}" * paired)
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, fontsize=8)
    axis.set_yticks(range(len(names), 0, -1), [name.replace("*", "") for name in names])
    axis.set_ylim(0.4, len(names) + 0.6)
    axis.set_xscale("log")
    highest = max((statistics.median(entry.ratios) for entry in entries), default=1)
    axis.set_xlim(0.05, max(2.5, 2 * highest))
    unlog(axis, "x", (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200))
    axis.axvline(1, color="black", linewidth=1)
    axis.set_xlabel("CPU of the chunker ÷ CPU of tiktoken alone")


if __name__ == "__main__":
    main({"chunkers": run})
