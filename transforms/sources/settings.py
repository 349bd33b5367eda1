"""How documents are read, and which columns of a table hold what."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, field_validator

from transforms.sources.columns import COLUMNS

MIB = 1 << 20
_SHOWN = 50


class ReadSettings(BaseModel):
    """How documents are read.

    Args:
        source_name: Name of the data set; it becomes the `source` partition.
        columns: For names of document columns (`document_id`, `text`, ...) the column of the file that holds
            them. Names that are not given are looked for as they are; an empty column leaves one out.
        metadata_columns: Further columns of the file, carried into `metadata` under their names.
        input_format: `auto` takes `*.parquet` for tables of documents and all else for documents.
        charset: Character set of documents that are bytes; by default it is told from the bytes.
        media_type: Media type of all documents; by default it is told by column or name.
        max_document_bytes: Largest document that is read, in bytes; at most 1 GiB. Larger ones become dead
            letters.
        task_bytes: Bytes read in one piece of work. A row group is never split; smaller tasks spread better. On this
            machine each is a wave, which a run that was killed need not repeat, and at most a 64th of all, or 1 MiB.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_name: str = Field("documents", min_length=1)
    columns: Mapping[str, str] = {}
    metadata_columns: tuple[str, ...] = ()
    input_format: Literal["auto", "parquet", "object"] = "auto"
    charset: str | None = None
    media_type: str | None = None
    max_document_bytes: int = Field(64 * MIB, ge=1, le=1024 * MIB)
    task_bytes: int = Field(64 * MIB, ge=1)

    @field_validator("columns")
    @classmethod
    def _names_are_known(cls, columns: Mapping[str, str]) -> Mapping[str, str]:
        if unknown := sorted(set(columns) - set(COLUMNS)):
            raise ValueError(f"no such document columns: {unknown}; there are {sorted(COLUMNS)}")
        return columns

    @field_validator("charset")
    @classmethod
    def _charset_is_known(cls, charset: str | None) -> str | None:
        if charset is not None:
            try:
                codecs.lookup(charset)
            except LookupError as error:
                raise ValueError(str(error)) from error
        return charset


@dataclass(frozen=True)
class Fault:
    """Why the columns of a file do not do.

    Args:
        setting: Setting that would mend it.
        value: Its value now.
        reason: Short code.
        message: What is wrong and what to do.
    """

    setting: str
    value: str
    reason: str
    message: str


def used_columns(schema: pa.Schema, settings: ReadSettings) -> dict[str, str]:
    """The columns of a file that are read, by the name of what they hold."""
    wanted = {name: settings.columns.get(name, name) for name in COLUMNS}
    return {name: column for name, column in wanted.items() if column and column in schema.names}


def find_fault(schema: pa.Schema, settings: ReadSettings) -> Fault | None:
    """The first thing that keeps documents from being read by `settings` out of a file with `schema`."""
    shown = ", ".join(map(repr, schema.names[:_SHOWN])) + ", ..." * (len(schema.names) > _SHOWN)
    used = used_columns(schema, settings)
    asked = [(_flag(name), column) for name, column in {**settings.columns, **used}.items() if column]
    asked += [("metadata_columns", column) for column in settings.metadata_columns]
    if not {"text", "content", "blocks"} & set(used):
        asked.append(("text_column", settings.columns.get("text", "text")))
    for flag, column in asked:
        if (times := schema.names.count(column)) != 1:
            fault = f"there are {times} columns" if times else "there is no column"
            reason = "duplicate_column" if times else "missing_column"
            return Fault(flag, column, reason, f"{fault} {column!r}; set --{flag} to one of {shown}")
    for name, column in used.items():
        fits, needed = COLUMNS[name]
        type_ = schema.field(column).type
        if not (fits(type_) or pa.types.is_null(type_)):
            message = f"column {column!r} has type {type_}, {name} needs {needed}"
            hint = f"set --{_flag(name)} to one of {shown}, or to nothing to leave it out"
            return Fault(_flag(name), column, "wrong_type", f"{message}; {hint}")
    return None


def _flag(name: str) -> str:
    return "id_column" if name == "document_id" else f"{name}_column"
