"""Every flag of the job, and the frozen settings that they become.

A flag is a field of a settings model: its name, default and text are read from there, so that each exists
once.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from transforms.chunkers import CHUNKERS, Chunker, get_chunker
from transforms.chunkers.presets import PRESETS, preset_settings
from transforms.errors import ConfigError
from transforms.parsers import ParseSettings
from transforms.provenance import Cleanup, WriteMode
from transforms.rules import Rule, Rules
from transforms.sources import ReadSettings
from transforms.sources.columns import COLUMNS

Model = TypeVar("Model", bound=BaseModel)


class JobSettings(BaseModel):
    """What a run is to do, besides how documents are read, parsed and cut.

    Args:
        input: Files, folders and patterns to read, local or `gs://`, `s3://`, `abfs://`. In a pattern `*`
            stays within a folder and `**` spans any number of them. `*.parquet` holds a document per row, any
            other file is a document. Repeatable.
        output: Root of the table: a folder, local or in an object store.
        mode: `incremental` reads only files that are new or changed, or failed before, `overwrite` replaces exactly
            what the run covers (its chunker and source), `append` adds to it, `error_if_exists` refuses a table that
            is there; default: `incremental` for a table that is there, else `overwrite`.
        cleanup: What an incremental run takes out of the table: `incremental` what changed files held before, `full`
            also what files held that the inputs do not list any more, `scoped_full` only if they name such a file,
            `none` nothing, so that changed files are left as they are.
        max_vanished: Share of the documents that `full` and `scoped_full` may take out, 0 to 1; a run that would take
            out more is refused.
        only_failed: Read only files with dead letters again, and leave all else as it is.
        allow_empty: Take an input that matches nothing for an empty one.
        shards: Shards of a new table, each written as a whole by one worker; default: one per 128 MiB of
            input. `chunkmill compact --shards` changes them later.
        partition_by: Columns of documents (`title`, `language`, `media_type`, `license`, `tenant_id`) or keys of
            their metadata, for further folders of the chunks such as `by_language=en`. Repeatable, or with commas
            between; an empty name for none; default: those of the table. At most 1,000 values each.
        keep_text: Keep each document's text in the ledger, so that chunks can be sliced anew later.
        compat: Write plain Parquet encodings, for readers that lack the delta encodings.
        max_error_rate: Share of documents, unchanged ones among them, that may fail before the exit status says
            so, 0 to 1.
        run_id: Id of the run; default: derived from the inputs and the settings, so that the same command
            names the same run and finishes what was interrupted.
        run_time: Logical time of the run, ISO 8601, written to every row; default: the newest change of any
            input, so that the same inputs give the same bytes.
        job_id: Name that a scheduler gave to the job, written to every row.
        runner: `DirectRunner` (this machine), `SparkRunner`, `DataflowRunner`, or another of Beam's.
        workers: Worker processes on this machine; at least 1.
        report: File to write the run's report to, as JSON; it is in the table too, under `control/runs/`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: tuple[str, ...] = Field(min_length=1)
    output: str = Field(min_length=1)
    mode: WriteMode | None = None
    cleanup: Cleanup = "incremental"
    max_vanished: float = Field(default=0.5, ge=0, le=1)
    only_failed: bool = False
    allow_empty: bool = False
    shards: int | None = Field(default=None, ge=1, le=100_000)
    partition_by: tuple[str, ...] | None = None
    keep_text: bool = False
    compat: bool = False
    max_error_rate: float = Field(default=0.0, ge=0, le=1)
    run_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")
    run_time: str | None = None
    job_id: str | None = None
    runner: str = "DirectRunner"
    workers: int = Field(default=1, ge=1)
    report: str | None = None

    @field_validator("max_vanished", "max_error_rate", "shards", "workers", mode="before")
    @classmethod
    def _no_truth_value(cls, value: object) -> object:
        # YAML's `yes` would be 1, and let all documents vanish.
        if isinstance(value, bool):
            raise ValueError("must be a number")
        return value

    @field_validator("partition_by", mode="before")
    @classmethod
    def _split(cls, keys: object) -> object:
        if not isinstance(keys, list | tuple) or not all(isinstance(key, str) for key in keys):
            return keys
        return [key for item in keys for key in map(str.strip, item.split(",")) if key]


class RunSettings(BaseModel):
    """Everything that one run is told.

    Args:
        job: What to do.
        read: How documents are read.
        parse: How they are parsed.
        chunker: How they are cut.
        rules: How some of them are cut instead, the first rule that takes a document.
        beam_args: Options handed to Beam as they are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    job: JobSettings
    read: ReadSettings
    parse: ParseSettings
    chunker: Chunker
    rules: tuple[Rule, ...] = ()
    beam_args: tuple[str, ...] = ()

    @property
    def chunking(self) -> Rules:
        """Which chunker cuts which document."""
        return Rules(self.chunker, self.rules)

    def recorded(self) -> dict[str, object]:
        """The settings that say what the table holds, as the manifest keeps them."""
        shaping = {"mode", "partition_by", "keep_text", "compat", "job_id", "run_time", "allow_empty"}
        shaping |= {"cleanup", "only_failed"}
        rules = self.chunking
        ruled = {"rules": rules.records(), "rules_hash": rules.fingerprint()} if self.rules else {}
        return {
            **ruled,
            **self.job.model_dump(mode="json", include=shaping),
            "read": self.read.model_dump(mode="json"),
            "parse": self.parse.model_dump(mode="json"),
            "chunker": self.chunker.name,
            "chunker_hash": self.chunker.fingerprint(),
            "chunker_settings": self.chunker.record.settings,
        }


# The chunker's flags are those that every strategy has; the rest is reached by --set.
_CHUNKER_FLAGS = ("chunk_size", "chunk_overlap", "tokenizer", "context", "context_in_budget", "engine")
_SHARED_BY_RULES = ("tokenizer", "context", "context_in_budget", "engine")
_NOT_FLAGS = {"columns"}
_LISTS = ("input", "partition_by", "metadata_columns", "beam_args")
_EXTRA = {
    "chunker": f"Chunking strategy: {', '.join(sorted(CHUNKERS))}; see `chunkmill chunkers`.",
    "preset": f"Strategy and defaults of another system: {', '.join(PRESETS)}. What is given besides wins.",
    "set": "key=value: any setting of the chunker, the value as YAML. Repeatable.",
    "config": "YAML file with flags by name (`input` a list, `set` a table), and `rules`; flags on the command line "
    "win, those of `set` key by key.",
    "beam_args": "Option for Beam, such as --beam_args=--region=europe-west1. Repeatable.",
}


def add_chunker_flags(parser: argparse.ArgumentParser, default: str | None = "recursive") -> None:
    """Add the flags that choose and set a chunker.

    Args:
        parser: Where to add them.
        default: Strategy if none is chosen.
    """
    text = f"{_EXTRA['chunker']} Default: {default}"
    parser.add_argument("--chunker", default=argparse.SUPPRESS, help=text)
    parser.add_argument("--preset", default=argparse.SUPPRESS, help=_EXTRA["preset"])
    help_of = descriptions(Chunker)
    for name in _CHUNKER_FLAGS:
        options: dict[str, Any] = {"default": argparse.SUPPRESS, "help": help_of[name].replace("%", "%%")}
        if Chunker.model_fields[name].annotation is bool:
            options["action"] = argparse.BooleanOptionalAction
        parser.add_argument(f"--{name}", **options)
    parser.add_argument(
        "--set", action="append", default=argparse.SUPPRESS, metavar="KEY=VALUE", help=_EXTRA["set"]
    )


def add_model_flags(parser: argparse.ArgumentParser, *models: type[BaseModel]) -> None:
    """Add a flag for every field of some settings models.

    Args:
        parser: Where to add them.
        *models: The models.
    """
    for model in models:
        group = parser.add_argument_group(model.__name__.removesuffix("Settings").lower())
        help_of = descriptions(model)
        for name, info in model.model_fields.items():
            if name in _NOT_FLAGS:
                continue
            options: dict[str, Any] = {"default": argparse.SUPPRESS}
            if name in _LISTS:
                options["action"] = "append"
            elif info.annotation is bool:
                options["action"] = argparse.BooleanOptionalAction
            elif choices := _choices(info.annotation):
                options["choices"] = choices
            text = help_of[name].replace("%", "%%")
            if info.default is not None and not info.is_required() and info.default not in ((), {}):
                text += f" Default: {info.default}"
            group.add_argument(f"--{name}", help=text, **options)


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a `Literal`, also of one that may be None."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return next(filter(None, map(_choices, get_args(annotation))), ())


def add_reading_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how documents are read and parsed.

    Args:
        parser: Where to add them.
    """
    add_model_flags(parser, ReadSettings, ParseSettings)
    columns = parser.add_argument_group("columns of Parquet inputs; an empty name leaves one out")
    for name in COLUMNS:
        text = f"Column that holds {name}. Default: {name}"
        columns.add_argument(f"--{column_flag(name)}", default=argparse.SUPPRESS, help=text)


def run_parser(parser: argparse.ArgumentParser) -> None:
    """Add all flags of `chunkmill run`.

    Args:
        parser: Where to add them.
    """
    add_config_flag(parser)
    add_chunker_flags(parser)
    add_model_flags(parser, JobSettings)
    add_reading_flags(parser)
    parser.add_argument("--beam_args", action="append", default=argparse.SUPPRESS, help=_EXTRA["beam_args"])


def add_config_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names a configuration file.

    Args:
        parser: Where to add it.
    """
    parser.add_argument("--config", default=None, help=_EXTRA["config"])


def column_flag(name: str) -> str:
    """Flag that names the column for a document column."""
    return "id_column" if name == "document_id" else f"{name}_column"


def run_settings(flags: Mapping[str, Any], config: str | None = None) -> RunSettings:
    """The settings of a run.

    Args:
        flags: Flags by name, as given; those not given are missing.
        config: YAML file with further flags; `flags` win.

    Raises:
        ConfigError: If a setting is unknown or refused, or the file cannot be read.
    """
    given = with_config(flags, config)
    chunker = make_chunker(given)
    read, parse = reading_settings(given)
    job = _model(JobSettings, given)
    return RunSettings(
        job=job,
        read=read,
        parse=parse,
        chunker=chunker,
        rules=make_rules(given),
        beam_args=_strings("beam_args", given),
    )


def with_config(flags: Mapping[str, Any], config: str | None) -> dict[str, Any]:
    """Flags by name, with those of a configuration file where the command line is silent.

    Args:
        flags: Flags by name, as given; those not given are missing.
        config: YAML file with further flags; `flags` win.

    Raises:
        ConfigError: If a flag is unknown, or the file cannot be read.
    """
    from_file = _config_file(config) if config else {}
    given = {**from_file, **flags}
    if "set" in given:
        given["set"] = {**_pairs(from_file.get("set", {})), **_pairs(flags.get("set", {}))}
    known = {"chunker", "preset", "rules", "set", *_CHUNKER_FLAGS, *map(column_flag, COLUMNS), "beam_args"}
    models = (JobSettings, ReadSettings, ParseSettings)
    for name, value in given.items():
        if not any(name in names for names in (known, *(model.model_fields for model in models))):
            raise ConfigError(name, value, "there is no such setting; `chunkmill run --help` lists them all")
    return given


def reading_settings(given: Mapping[str, Any]) -> tuple[ReadSettings, ParseSettings]:
    """How documents are read and parsed.

    Args:
        given: Flags by name; those of other things are passed over.

    Raises:
        ConfigError: If a setting is refused.
    """
    columns = {name: given[column_flag(name)] for name in COLUMNS if column_flag(name) in given}
    mapped = given.get("columns", {})
    if columns and isinstance(mapped, Mapping):
        given = {**given, "columns": {**mapped, **columns}}
    return _model(ReadSettings, given), _model(ParseSettings, given)


def _model(model: type[Model], given: Mapping[str, Any]) -> Model:
    return validated(model, {name: given[name] for name in model.model_fields if name in given})


def make_chunker(given: Mapping[str, Any]) -> Chunker:
    """The chunker that some flags choose.

    Args:
        given: Flags by name; those of other things are passed over.

    Raises:
        ConfigError: If the strategy is unknown, or it refuses a setting.
    """
    settings = {name: given[name] for name in _CHUNKER_FLAGS if name in given}
    for key, value in _pairs(given.get("set", {})).items():
        if key in settings:
            raise ConfigError("set", f"{key}={value}", f"is given as --{key} too")
        settings[key] = value
    name = given.get("chunker")
    if not isinstance(name, str | None):
        raise ConfigError("chunker", name, "must be the name of a strategy; its settings go into `set`")
    if "preset" in given:
        name, settings = preset_settings(given["preset"], name, settings)
    return get_chunker(name or "recursive", **settings)


def chunking(given: Mapping[str, Any]) -> Rules:
    """Which chunker cuts which document, by some flags.

    Args:
        given: Flags by name; those of other things are passed over.

    Raises:
        ConfigError: If a strategy is unknown, or it refuses a setting.
    """
    return Rules(make_chunker(given), make_rules(given))


def make_rules(given: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules of a configuration file: tables with conditions and the flags of a chunker.

    Args:
        given: Flags by name. Tokenizer, engine and context hold for the chunkers of rules too, unless one has
            its own.

    Raises:
        ConfigError: If a rule is none, or its chunker is refused.
    """
    rules = given.get("rules", ())
    if not isinstance(rules, list | tuple) or not all(isinstance(rule, Mapping) for rule in rules):
        raise ConfigError("rules", rules, "must be a list of tables, each with a chunker and conditions")
    shared = {name: given[name] for name in _SHARED_BY_RULES if name in given}
    return tuple(_rule({**shared, **rule}) for rule in rules)


def _rule(given: Mapping[str, Any]) -> Rule:
    if not given.keys() & {"chunker", "preset"}:
        raise ConfigError("rules", dict(given), "a rule needs a `chunker` or a `preset`")
    of_chunker = {"preset", "set", *_CHUNKER_FLAGS}
    conditions = {name: value for name, value in given.items() if name not in of_chunker}
    return Rule(**{**conditions, "chunker": make_chunker(given)})


def validated(model: type[Model], values: Mapping[str, Any]) -> Model:
    """A settings model from values by name.

    Args:
        model: The model.
        values: Values by name of the field.

    Raises:
        ConfigError: If a value is refused or a required one is missing; it names the setting and the value.
    """
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else model.__name__
        if first["type"] == "missing":
            raise ConfigError(name, None, f"is needed: give --{name}") from None
        raise ConfigError(name, values.get(name), first["msg"].removeprefix("Value error, ")) from None


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """What a settings model's docstring says of each of its fields.

    Args:
        model: The model.
    """
    section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.cleandoc(model.__doc__ or ""), re.M | re.S)
    items = re.findall(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", section[1], re.M | re.S) if section else []
    return {name: " ".join(text.split()) for name, text in items}


def _pairs(extra: object) -> dict[str, Any]:
    """What `set` holds: a table, or items like `key=value`."""
    if isinstance(extra, Mapping) and all(isinstance(key, str) for key in extra):
        return dict(extra)
    items = [extra] if isinstance(extra, str) else extra
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise ConfigError("set", extra, "must be a table of settings of the chunker by name")
    return dict(map(_pair, items))


def _strings(name: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    values = given.get(name, ())
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise ConfigError(name, values, "must be a list of strings")
    return tuple(values)


def _pair(item: str) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    if not equals:
        raise ConfigError("set", item, "must be key=value")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError("set", item, f"the value is not YAML: {error}") from None


def _config_file(path: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigError("config", path, f"cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError("config", path, f"is not YAML: {error}") from None
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise ConfigError("config", path, "must be a table of flags by name")
    return {
        key: [value] if key in _LISTS and isinstance(value, str) else value for key, value in values.items()
    }
