"""What a run did: counts of its files, summed to one report."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.provenance import ChunkerRecord, Run, pipeline_version
from transforms.records import ABSENT
from transforms.schemas import SCHEMAS

if TYPE_CHECKING:
    from transforms.paths import FileEntry

Report = dict[str, Any]

_OVER = 101
_PLAIN_TEXT = "plain_text"


# Counting the rows of a file.


def tally(kind: str, rows: pa.Table, chunker: ChunkerRecord | None) -> dict[str, Counter[str]]:
    """Counts of `rows`, by group and name, which add up over files.

    Args:
        kind: Table that the rows belong to.
        rows: The rows, in the schema of their kind.
        chunker: Chunker of their partition.
    """
    if kind in ("deletes", "changes"):
        return {}
    if kind == "chunks":
        sums = Counter(chunks=len(rows), tokens=pc.sum(rows["token_count"]).as_py() or 0)
        return {"cut": sums} | ({"fill": _fill(rows["token_count"], chunker.chunk_size)} if chunker else {})
    if kind == "dead_letters":
        return {
            "letters": _grouped(rows, "stage", "reason"),
            "lost_documents": _grouped(rows, "stage", "reason", total="documents"),
        }
    states = _grouped(rows, "status")
    cut = rows.filter(pc.invert(pc.is_in(rows["status"], pa.array(ABSENT))))
    names = ("byte_count", "char_count", "lost_chars", "removed_chars", "over_budget_count")
    return {
        "status": Counter({name: number for name, number in states.items() if name != "failed"}),
        "parsers": _grouped(cut, "parser_name", "media_type"),
        "sums": Counter({name: pc.sum(cut[name]).as_py() or 0 for name in names}),
        "notes": sum((Counter(json.loads(note)) for note in cut["notes"].to_pylist() if note), Counter()),
    }


def _fill(tokens: pa.ChunkedArray[Any], chunk_size: int) -> Counter[str]:
    """Chunks by the percentage of the budget that they fill, rounded up; 101 is over it."""
    percent = -(-100 * tokens.to_numpy().astype(np.int64) // chunk_size)
    values, counts = np.unique(np.clip(percent, 1, _OVER), return_counts=True)
    return Counter(dict(zip(map(str, values.tolist()), counts.tolist(), strict=True)))


def _grouped(rows: pa.Table, *keys: str, total: str = "rows") -> Counter[str]:
    """Sum of `total` by the values of `keys`, which a colon joins."""
    rows = rows.append_column("rows", pa.repeat(pa.scalar(1, pa.int64()), len(rows)))
    sums = rows.group_by(list(keys)).aggregate([(total, "sum")]).to_pylist()
    return Counter({":".join(str(row[key]) for key in keys): row[f"{total}_sum"] for row in sums})


# The report.


def build(
    entries: Sequence[FileEntry],
    run: Run,
    chunkers: Mapping[str, ChunkerRecord],
    *,
    seq: int,
    outcome: str,
    replaced: int,
) -> Report:
    """The report of a run.

    Args:
        entries: Files of the run.
        run: The run.
        chunkers: Its chunkers by partition value.
        seq: Number of the commit in which the table holds the run.
        outcome: `committed`, or `unchanged` if the table held all of it already.
        replaced: Files of earlier runs that it replaced.
    """
    counts: dict[str, Counter[str]] = {}
    for entry in entries:
        for group, values in entry.tally.items():
            counts.setdefault(group, Counter()).update(values)
    status, sums, fill = (counts.get(group, Counter()) for group in ("status", "sums", "fill"))
    letters, lost = (counts.get(group, Counter()) for group in ("letters", "lost_documents"))
    documents = {name: status[name] for name in ("ok", "blank", "skipped")} | {"failed": lost.total()}
    parsers = [
        _pair(key, "parser", "media_type", documents=n) for key, n in _sorted(counts.get("parsers", {}))
    ]
    cut = counts.get("cut", Counter())

    return {
        "run_id": run.run_id,
        "created_at": datetime.fromtimestamp(run.created_at / 1e6, timezone.utc).isoformat(),
        "mode": run.mode,
        "outcome": outcome,
        "seq": seq,
        "shards": run.shards,
        "sources": dict(run.increment.sources) if run.increment else {},
        "documents": {"in": sum(documents.values()), **documents},
        "documents_kept": run.increment.documents if run.increment else 0,
        "documents_deleted": status["deleted"],
        "chunks": cut["chunks"],
        "tokens": cut["tokens"],
        "bytes": sums["byte_count"],
        "characters": sums["char_count"],
        "lost_characters": sums["lost_chars"],
        "removed_characters": sums["removed_chars"],
        "coverage": 1 - sums["lost_chars"] / max(sums["char_count"], 1),
        "over_budget": sums["over_budget_count"],
        "notes": dict(sorted(counts.get("notes", {}).items())),
        "fill": _tenths(fill),
        "fill_percentiles": {str(share): _percentile(fill, share) for share in (10, 50, 90)},
        "dead_letters": [
            _pair(key, "stage", "reason", letters=n, documents=lost[key]) for key, n in _sorted(letters)
        ],
        "media_types": parsers,
        "read_as_plain_text": {
            row["media_type"]: row["documents"]
            for row in parsers
            if row["parser"] == _PLAIN_TEXT and row["media_type"] != "text/plain"
        },
        "files": {
            kind: {
                "files": sum(entry.kind == kind for entry in entries),
                "rows": sum(entry.rows for entry in entries if entry.kind == kind),
                "bytes": sum(entry.bytes for entry in entries if entry.kind == kind),
            }
            for kind in SCHEMAS
        },
        "replaced_files": replaced,
        "chunkers": {value: asdict(chunker) for value, chunker in sorted(chunkers.items())},
        "settings": dict(run.settings),
        "versions": versions(),
        "seconds": {},
    }


def with_seconds(report: Report, seconds: Mapping[str, float], engines: Sequence[str] = ()) -> Report:
    """`report` with what is known only after the run.

    Args:
        report: The report.
        seconds: CPU seconds of each stage, over all workers.
        engines: What encoded tokens, and whether the inner loops were compiled.
    """
    return {**report, "seconds": dict(seconds), "engines": list(engines)}


def versions() -> dict[str, str | None]:
    """Versions of what the output depends on; None for what is not installed."""
    packages = {"apache_beam": "apache-beam", "pyarrow": "pyarrow", "tiktoken": "tiktoken"}
    return {
        "chunkmill": pipeline_version(),
        "python": platform.python_version(),
        **{name: _version(package) for name, package in packages.items()},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _sorted(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Most frequent first."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _pair(key: str, first: str, second: str, **counts: int) -> dict[str, Any]:
    left, _, right = key.partition(":")
    return {first: left, second: right, **counts}


def _tenths(fill: Mapping[str, int]) -> dict[str, int]:
    """Chunks by the tenth of the budget that they reach, from `0.1` to `1.0`, and `over`."""
    bins = {f"{tenth / 10:.1f}": 0 for tenth in range(1, 11)} | {"over": 0}
    for percent, count in fill.items():
        tenth = -(-int(percent) // 10)
        bins["over" if tenth > 10 else f"{tenth / 10:.1f}"] += count
    return bins


def _percentile(fill: Mapping[str, int], share: int) -> float | None:
    """Share of the budget that `share` percent of the chunks do not exceed; 1.01 is over it."""
    left = sum(fill.values()) * share / 100
    for percent, count in sorted((int(percent), count) for percent, count in fill.items()):
        left -= count
        if left <= 0:
            return percent / 100
    return None


# The report, to be read in a terminal.


def summary(report: Report) -> str:
    """The report as lines of plain text."""
    return "\n".join(f"{name:<11}{text}" for name, text in _lines(report))


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    documents = dict(report["documents"])
    came = documents.pop("in")
    states = ", ".join(f"{count:,} {name}" for name, count in documents.items() if count)
    if report["sources"]:
        yield "sources", ", ".join(f"{count:,} {name}" for name, count in report["sources"].items())
    yield "documents", f"{came:,}" + (f": {states}" if states else "")
    if report["sources"]:
        yield "", f"{report['documents_kept']:,} kept, {report['documents_deleted']:,} deleted"
    for row in report["dead_letters"]:
        yield "failed", f"{row['documents']:,} {row['stage']}: {row['reason']}"
    for media_type, count in report["read_as_plain_text"].items():
        yield "plain text", f"{count:,} of {media_type}, for want of a parser"
    yield "text", f"{report['bytes'] / 1e6:,.1f} MB, {report['characters']:,} characters"
    yield "chunks", _chunks(report)
    yield "coverage", f"{report['coverage']:.4%}, {report['lost_characters']:,} characters lost"
    if report["removed_characters"]:
        yield "left out", f"{report['removed_characters']:,} characters, as the settings say"
    files = report["files"].values()
    yield "files", f"{sum(f['files'] for f in files):,}, {sum(f['bytes'] for f in files) / 1e6:,.1f} MB"
    replaced = f", {report['replaced_files']:,} files replaced" if report["replaced_files"] else ""
    yield "table", f"{report['outcome']}, commit {report['seq']}, {report['mode']}{replaced}"
    if report["seconds"]:
        yield "seconds", ", ".join(f"{stage} {spent:.1f}" for stage, spent in report["seconds"].items())


def _chunks(report: Report) -> str:
    parts = [f"{report['chunks']:,}", f"{report['tokens']:,} tokens"]
    if report["fill_percentiles"]["50"] is not None:
        parts.append(f"half of them fill {report['fill_percentiles']['50']:.0%} of the budget or more")
    if report["over_budget"]:
        parts.append(f"{report['over_budget']:,} over it")
    return ", ".join(parts)
