"""The command `chunkmill`. Each subcommand imports what it needs, and only then."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pipelines.garbage import collect_seldom

_OK, _FAILED, _BAD_SETTING, _TOO_MANY_ERRORS, _INTERRUPTED = 0, 1, 2, 3, 130

_EXIT_STATUS = """exit status:
  0    success
  1    the run failed, or a table does not verify
  2    a setting was refused; nothing was done
  3    success, but more documents failed than --max_error_rate allows
  130  interrupted; the table is as it was"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Arguments, without the program's name; those of the process by default.

    Returns:
        The exit status.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    command = _COMMANDS.get(arguments[0]) if arguments else None
    if command is None:
        return _overview(arguments)
    from transforms.errors import ChunkmillError, ConfigError

    try:
        return command(arguments[1:])
    except ConfigError as error:
        print(f"chunkmill: {error}", file=sys.stderr)
        return _BAD_SETTING
    except ChunkmillError as error:
        print(f"chunkmill: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        print("chunkmill: interrupted; nothing was committed", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever reads has seen enough; Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _OK


def _overview(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="chunkmill",
        description="Turns document corpora into chunk tables for retrieval.",
        epilog=_EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=False)
    for name, command in _COMMANDS.items():
        commands.add_parser(name, help=command.__doc__)
    if parser.parse_args(arguments).version:
        from transforms.provenance import pipeline_version

        print(f"chunkmill {pipeline_version()}")
    else:
        parser.print_help()
    return _OK


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # The usage is a page of flags, in which the one line that matters would be lost.
        self.exit(_BAD_SETTING, f"{self.prog}: {message}; see {self.prog} --help\n")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return int(text)


def _parser(name: str, command: Callable[..., int]) -> argparse.ArgumentParser:
    return _Parser(
        prog=f"chunkmill {name}",
        description=command.__doc__,
        epilog=_EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _run(arguments: Sequence[str]) -> int:
    """Read documents, cut them, and commit the chunk table."""
    # Arrow's other allocators hand freed pages back at once, and getting them anew takes a third of all writing.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    # Arrow and numpy start threads when they are imported, which nothing here needs, and which keep it from forking.
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    collect_seldom()
    from pipelines import beam_clients, chunk_corpus
    from pipelines.options import run_parser, run_settings
    from pipelines.progress import progress
    from transforms.run_report import summary

    parser = _parser("run", _run)
    run_parser(parser)
    flags = vars(parser.parse_args(arguments))
    settings = run_settings(flags, flags.pop("config"))
    if settings.job.runner == "DirectRunner" and not settings.beam_args:
        beam_clients.leave_out()
    with chunk_corpus.workers_standing_by(settings):
        job = chunk_corpus.prepare(settings)
        with progress(job):
            report = chunk_corpus.run(job)
    if report is None:
        print(f"run {job.run.run_id} is submitted")
        return _OK
    if settings.job.report:
        Path(settings.job.report).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(summary(report))
    allowed = settings.job.max_error_rate
    failed, documents = report["documents"]["failed"], report["documents"]["in"] + report["documents_kept"]
    if failed <= allowed * documents:
        return _OK
    print(
        f"chunkmill: {failed} of {documents} documents failed, more than "
        f"max_error_rate={allowed} allows; {settings.job.output}/dead_letters says which and why",
        file=sys.stderr,
    )
    return _TOO_MANY_ERRORS


def _preview(arguments: Sequence[str]) -> int:
    """Show what a chunker makes of a few documents."""
    from pipelines import options, preview
    from transforms.records import DeadLetter

    parser = _parser("preview", _preview)
    parser.add_argument("file", nargs="+", help="files, folders and patterns; - for standard input")
    parser.add_argument("-n", type=_count, help="chunks to show of each document (text: 10, json: all)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json: one chunk a line")
    options.add_config_flag(parser)
    options.add_chunker_flags(parser)
    options.add_reading_flags(parser)
    flags = vars(parser.parse_args(arguments))
    files, shown, as_json = flags.pop("file"), flags.pop("n"), flags.pop("format") == "json"
    given = options.with_config(flags, flags.pop("config"))
    rules = options.chunking(given)
    read, parse = options.reading_settings(given)
    failed = 0
    for document in preview.documents(files, read, parse):
        result = preview.cut(document, rules)
        if isinstance(result, DeadLetter):
            failed += 1
            print(f"chunkmill: {preview.why(result)}", file=sys.stderr)
        elif as_json:
            if lines := preview.as_json_lines(result, shown):
                print(lines)
        else:
            print(preview.as_text(result, rules, 10 if shown is None else shown))
    return _TOO_MANY_ERRORS if failed else _OK


def _chunkers(arguments: Sequence[str]) -> int:
    """List the chunking strategies with their settings, defaults and fingerprints."""
    from pipelines.options import descriptions
    from transforms.chunkers import CHUNKERS, Chunker

    parser = _parser("chunkers", _chunkers)
    parser.add_argument("name", nargs="?", choices=sorted(CHUNKERS), help="only this strategy")
    help_of_format = "json: one strategy a line"
    parser.add_argument("--format", choices=("text", "json"), default="text", help=help_of_format)
    flags = parser.parse_args(arguments)
    for name in [flags.name] if flags.name else sorted(CHUNKERS):
        kind = CHUNKERS[name]
        chunker = kind()
        texts = {**descriptions(Chunker), **descriptions(kind)}
        defaults = _defaults(chunker)
        if flags.format == "json":
            about = {"name": name, "version": kind.VERSION, "fingerprint": chunker.fingerprint()}
            print(json.dumps({**about, "settings": defaults}, ensure_ascii=False))
            continue
        print(f"{name}  (version {kind.VERSION}, fingerprint of the defaults {chunker.fingerprint()})")
        print(f"  {(kind.__doc__ or '').splitlines()[0]}")
        for setting, value in defaults.items():
            print(f"  {setting:<16} {json.dumps(value, ensure_ascii=False)}\n{'':<19}{texts[setting]}")
        print()
    return _OK


def _defaults(chunker: Any) -> dict[str, object]:
    return {
        setting: value.name if hasattr(value, "fingerprint") else value
        for setting, value in chunker.settings().items()
    }


def _verify(arguments: Sequence[str]) -> int:
    """Prove a table again: its files, its rows and, with the documents at hand, the laws."""
    from pipelines.options import add_reading_flags, reading_settings
    from transforms.errors import ConfigError
    from transforms.history import reading_of, source_names
    from transforms.sources import match
    from transforms.verify import verify

    parser = _parser("verify", _verify)
    parser.add_argument("table", help="root of the table")
    help_of_input = "the documents it was made from; repeatable"
    parser.add_argument("--input", action="append", default=[], help=help_of_input)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    add_reading_flags(parser)
    flags = vars(parser.parse_args(arguments))
    if flags["input"] and "source_name" not in flags and len(held := source_names(flags["table"])) > 1:
        message = f"is needed with --input, since the table holds {', '.join(held)}"
        raise ConfigError("source_name", None, message)
    # Documents are read again as they were read, unless flags say otherwise.
    recorded = reading_of(flags["table"], flags.get("source_name")) if flags["input"] else {}
    read, parse = reading_settings({**recorded, **flags})
    files = match(flags["input"], input_format=read.input_format) if flags["input"] else []
    report = verify(flags["table"], files, read, parse)
    print(json.dumps(report.to_json(), indent=1) if flags["format"] == "json" else report.summary())
    return _OK if report.ok else _FAILED


def _history(arguments: Sequence[str]) -> int:
    """List the commits of a table, oldest first."""
    from dataclasses import asdict

    from transforms.history import history

    parser = _parser("history", _history)
    parser.add_argument("table", help="root of the table")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json: one commit a line")
    flags = parser.parse_args(arguments)
    for commit in history(flags.table):
        print(json.dumps(asdict(commit)) if flags.format == "json" else commit)
    return _OK


def _compact(arguments: Sequence[str]) -> int:
    """Merge the small files of a table, and change its number of shards, as a commit with the same rows."""
    from pipelines.chunk_corpus import check_report
    from transforms.compact import compact, summary

    parser = _parser("compact", _compact)
    parser.add_argument("table", help="root of the table")
    parser.add_argument(
        "--shards", type=_count, help="shards that it is to have (default: as many as it has)"
    )
    parser.add_argument("--report", help="file to write the report to, as JSON")
    flags = parser.parse_args(arguments)
    check_report(flags.report)
    report = compact(flags.table, flags.shards)
    if flags.report:
        Path(flags.report).write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(summary(report))
    return _OK


def _vacuum(arguments: Sequence[str]) -> int:
    """Remove replaced files and what broken runs left; earlier commits cannot be read any more then."""
    from time import time

    from transforms.history import vacuum

    parser = _parser("vacuum", _vacuum)
    parser.add_argument("table", help="root of the table")
    help_of_age = "days since the last change of what is removed; more than any run takes (default: 7)"
    parser.add_argument("--older_than", type=_days, default=7.0, help=help_of_age, metavar="DAYS")
    parser.add_argument("--dry_run", action="store_true", help="remove nothing, say what would be")
    flags = parser.parse_args(arguments)
    removed = vacuum(flags.table, int((time() - flags.older_than * 86_400) * 1e6), dry_run=flags.dry_run)
    for path in removed:
        print(path)
    print(f"{len(removed)} files {'would be' if flags.dry_run else 'were'} removed", file=sys.stderr)
    return _OK


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1
    if not 0 <= days < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days")
    return days


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": _run,
    "preview": _preview,
    "chunkers": _chunkers,
    "verify": _verify,
    "history": _history,
    "compact": _compact,
    "vacuum": _vacuum,
}

if __name__ == "__main__":
    sys.exit(main())
