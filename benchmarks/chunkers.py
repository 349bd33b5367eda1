"""CPU of chunkers against a plain pass of tiktoken over the same documents, and whether their chunks are right."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from benchmarks import corpus, cutters
from benchmarks.correctness import Faults
from benchmarks.cutters import Cutter
from benchmarks.reference import cpu_seconds, plain_pass, reference
from benchmarks.report import Options, Table, draw, main, note, unlog
from transforms.chunkers import CHUNKERS
from transforms.records import Document
from transforms.tokenizers import Engine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OVERLAPS = (0, 64)
_FAST: Engine = "fastokens"
_ENGINES: tuple[Engine, ...] = (_FAST, "tiktoken")


@dataclass(frozen=True)
class _Extent:
    budget: int
    laps: int
    peer_budget: int
    peer_laps: int
    peer_seconds: float
    fresh: bool


_QUICK = _Extent(100_000, 1, 60_000, 1, 5.0, fresh=False)
# Of the documents that are measured, as many others are cut before the clock starts.
_WARM_UP = 6


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
        make: Makes it; anew in all of its parts if told so, so that it remembers nothing of the documents.
        documents: What it cuts; once `check` has run, what it managed to cut.
        others: What it cuts before the clock starts.
        laps: How often it is timed.
        seconds: CPU after which `check` leaves the rest of the documents out.

    Attributes:
        failure: Why it could not be made; empty if it could.
        faults: What is wrong with its chunks.
        ratios: Its CPU by that of the plain pass, lap by lap.
        best: Its CPU in its best lap.
    """

    name: str
    overlap: int
    make: Callable[[bool], Cutter]
    documents: Sequence[Document]
    others: Sequence[Document]
    laps: int
    seconds: float = float("inf")
    failure: str = ""
    faults: Faults = field(default_factory=Faults)
    ratios: list[float] = field(default_factory=list)
    best: float = float("inf")

    def check(self) -> None:
        """Cut everything once, untimed, and look at the chunks."""
        try:
            cutter = self.make(False)
        except Exception as error:
            self.failure = _say(error)
            return
        done: list[Document] = []
        spent = 0.0
        for document in self.documents:
            start = time.process_time()
            try:
                pieces = cutter.pieces(document)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # the panics of tiktoken are no Exception
                self.faults.raised[_say(error)] += 1
                continue
            spent += time.process_time() - start
            self.faults.add(document.text, pieces, self.overlap)
            done.append(document)
            if spent > self.seconds:
                break
        self.documents = done
        if not done:
            self.failure = f"cuts nothing: {next(iter(self.faults.raised), 'there are no documents')}"

    def lap(self, fresh: bool) -> None:
        """Time the plain pass, and right after it the chunker, over the same documents."""
        cut = self.make(fresh).cut

        def work() -> None:
            for document in self.documents:
                cut(document)

        for other in self.others:
            with contextlib.suppress(Exception):
                cut(other)
        plain = cpu_seconds(lambda: plain_pass(document.text for document in self.documents))
        spent = cpu_seconds(work)
        self.ratios.append(spent / plain)
        self.best = min(self.best, spent)

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
            f"{size / self.best:.1f}",
            f"{size:.1f}",
            f"{faults.chunks:,}",
            f"{faults.over / max(1, faults.chunks):.2%}" if faults.over else "0",
            f"{faults.lost:,}",
            f"{faults.introduced:,}",
            "none told" if faults.wrong is None else f"{faults.wrong:,}",
            f"{faults.raised.total()}: {next(iter(faults.raised))}" if faults.raised else "0",
        ]


_HEADER = (
    " chunker",
    "overlap",
    "CPU ÷ tiktoken",
    "range",
    "MB per CPU second",
    "MB",
    "chunks",
    "over budget",
    "characters lost",
    "U+FFFD",
    "wrong offsets",
    " documents that raised",
)
_COLOURS = {
    ("ours", 0): "#1f77b4",
    ("ours", 64): "#9ecae1",
    ("peers", 0): "#888888",
    ("peers", 64): "#cccccc",
}
_FORMS = {
    "whole": "whole documents",
    "small": f"the same cut to documents of {corpus.SMALL // 1024} KB",
}


def run(options: Options) -> list[Table]:
    """The race over both forms of the corpus."""
    # Both must be set before the engines start; and what peers log is no part of their work.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    logging.disable(logging.CRITICAL)
    extent = _QUICK if options.quick else _full(options.budget)
    everything = list(corpus.texts(options.documents))
    whole = corpus.sample(everything, extent.budget)
    part = corpus.sample(everything, extent.peer_budget)
    known = {text.document_id for text in (*whole, *part)}
    rest = [text for text in everything if text.document_id not in known]
    others = corpus.sample(rest, extent.budget // _WARM_UP) if rest else []
    del everything, rest
    try:
        tables = []
        for form, change in (("whole", list), ("small", corpus.cut_small)):
            documents = _Documents(*(corpus.parsed(change(texts)) for texts in (whole, part, others)))
            tables.append(_race(form, documents, extent, options))
        return tables
    finally:
        logging.disable(logging.NOTSET)


def _full(budget: int) -> _Extent:
    return _Extent(budget, 5, budget // 6, 3, 60.0, fresh=True)


def _race(form: str, documents: _Documents, extent: _Extent, options: Options) -> Table:
    reference()
    entries = [*_ours(documents, extent), *_peers(documents, extent)]
    for entry in entries:
        note(f"{form}: check {entry.name}, overlap {entry.overlap}")
        entry.check()
    # The documents stay to the end: collecting garbage need not look at them again and again.
    gc.freeze()
    for lap in range(max(entry.laps for entry in entries)):
        note(f"{form}: lap {lap + 1}")
        for entry in entries:
            if lap < entry.laps and not entry.failure:
                try:
                    entry.lap(extent.fresh)
                except Exception as error:
                    entry.failure = _say(error)
    gc.unfreeze()
    running = [entry for entry in entries if not entry.failure]
    path = options.output / f"chunkers_{form}.png"
    draw(path, f"CPU of chunkers, {_FORMS[form]}", lambda axis: _bars(axis, running), (9, 8))
    return Table(
        f"chunkers_{form}",
        f"Chunkers, {_FORMS[form]}",
        _about(documents.all, documents.part, extent),
        _HEADER,
        [entry.row() for entry in entries],
    )


def _ours(documents: _Documents, extent: _Extent) -> list[Entry]:
    unparsed, others = (
        [replace(document, blocks=None) for document in parsed]
        for parsed in (documents.all, documents.others)
    )
    entries = [
        Entry(
            f"**{name}**, {engine}",
            overlap,
            _maker(name, overlap, engine),
            documents.all,
            documents.others,
            extent.laps,
        )
        for engine, name, overlap in itertools.product(_ENGINES, CHUNKERS, OVERLAPS)
    ]
    entries += [
        Entry(
            f"**{name}**, {_FAST}, with the parse", 0, _maker(name, 0, _FAST), unparsed, others, extent.laps
        )
        for name in CHUNKERS
    ]
    return entries


def _peers(documents: _Documents, extent: _Extent) -> list[Entry]:
    few = documents.others[: len(documents.part) // _WARM_UP]
    return [
        Entry(
            name,
            overlap,
            _peer_maker(name, overlap),
            documents.part,
            few,
            extent.peer_laps,
            extent.peer_seconds,
        )
        for name, overlap in itertools.product(cutters.PEERS, OVERLAPS)
    ]


def _maker(name: str, overlap: int, engine: Engine) -> Callable[[bool], Cutter]:
    return lambda fresh: cutters.ours(name, overlap, engine, fresh=fresh)


def _peer_maker(name: str, overlap: int) -> Callable[[bool], Cutter]:
    return lambda _: cutters.PEERS[name](overlap)


def _say(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"not installed: {error.name}"
    if isinstance(error, NotImplementedError):
        return str(error)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:80]}" + "…" * (len(text) > 80)


def _about(documents: list[Document], part: list[Document], extent: _Extent) -> str:
    markdown = [document for document in documents if document.media_type == "text/markdown"]
    share = corpus.megabytes(markdown) / corpus.megabytes(documents)
    types = len({document.media_type for document in documents})
    return (
        f"cl100k_base, {cutters.SIZE} tokens a chunk. Ours in bold, with the engine that encodes: "
        f"{len(documents):,} documents of {types} media types, {corpus.megabytes(documents):.1f} MB; the blocks of "
        f"Markdown ({share:.0%} of it) are found beforehand, or, with the parse, by the chunker. Peers: "
        f"{corpus.megabytes(part):.1f} MB of the same, or as much as they cut in {extent.peer_seconds:.0f} s; each "
        f"in its cheapest call, at its defaults, with tiktoken or what it brings.\n\n"
        f"One process. CPU ÷ tiktoken: its CPU by that of a plain `tiktoken.encode_ordinary` pass over the same "
        f"documents right before it; the median of {extent.laps} laps ({extent.peer_laps} for peers), all chunkers "
        f"in every lap, each made anew and warmed up with other documents than those measured. Over budget: "
        f"recounted by tiktoken. Characters lost: not white space, in no chunk, the chunks aligned in order and in "
        f"favour of the chunker. Wrong offsets: chunks that are not what the text holds there."
    )


def _bars(axis: Axes, entries: Sequence[Entry]) -> None:
    names = list(dict.fromkeys(entry.name for entry in entries))
    for entry in entries:
        kind = "ours" if entry.name.startswith("**") else "peers"
        place = len(names) - names.index(entry.name) + (-0.2 if entry.overlap else 0.2)
        ratio = statistics.median(entry.ratios)
        axis.barh(place, ratio, 0.38, color=_COLOURS[kind, entry.overlap])
        axis.text(ratio * 1.04, place, f"{ratio:.2f}", va="center", fontsize=7)
    for (kind, overlap), colour in _COLOURS.items():
        axis.barh(0, 0, color=colour, label=f"{kind}, overlap {overlap}")
    axis.legend(loc="upper right")
    axis.set_yticks(range(len(names), 0, -1), [name.replace("*", "") for name in names])
    axis.set_ylim(0.4, len(names) + 0.6)
    axis.set_xscale("log")
    axis.set_xlim(0.1, 1.4 * max(statistics.median(entry.ratios) for entry in entries))
    unlog(axis, "x", (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50))
    axis.axvline(1, color="black", linewidth=1)
    axis.set_xlabel("CPU of the chunker ÷ CPU of tiktoken alone")


if __name__ == "__main__":
    main({"chunkers": run})
