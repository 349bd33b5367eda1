"""Flags and configuration files, and the settings that become of them."""

import argparse
from typing import get_args

import pytest
from pydantic import BaseModel

from pipelines import options
from pipelines.options import JobSettings, column_flag, descriptions, make_chunker, run_parser, run_settings
from transforms.chunkers import CHUNKERS, Chunker, get_chunker
from transforms.chunkers.presets import PRESETS
from transforms.errors import ConfigError
from transforms.parsers import ParseSettings
from transforms.sources import ReadSettings
from transforms.sources.columns import COLUMNS

MODELS = [JobSettings, ReadSettings, ParseSettings]
NEEDED = {"input": ["in/*.md"], "output": "out"}


def flags_of_run():
    parser = argparse.ArgumentParser()
    run_parser(parser)
    return {action.dest: action for action in parser._actions if action.dest != "help"}


def settings(**flags):
    return run_settings({**NEEDED, **flags})


def from_file(tmp_path, text, **flags):
    file = tmp_path / "job.yaml"
    file.write_text(text, "utf-8")
    return run_settings(flags, str(file))


# Texts.


@pytest.mark.parametrize("model", [*MODELS, *CHUNKERS.values()], ids=lambda model: model.__name__)
def test_each_setting_is_described_by_its_model(model):
    told = descriptions(model)
    if issubclass(model, Chunker):
        told = {**descriptions(Chunker), **told}

    assert {name: told.get(name) for name in model.model_fields if not told.get(name)} == {}


def test_a_description_ends_where_the_next_one_begins():
    class Settings(BaseModel):
        """What it is.

        Args:
            first: One line,
                and another: with a colon.
            second: Short.

        Raises:
            ValueError: Never.
        """

    assert descriptions(Settings) == {"first": "One line, and another: with a colon.", "second": "Short."}


def test_no_docstring_means_no_descriptions():
    class Settings(BaseModel):
        pass

    assert descriptions(Settings) == {}


def test_each_flag_of_run_has_help():
    assert [name for name, action in flags_of_run().items() if not (action.help or "").strip()] == []


def test_help_tells_the_default_of_the_model():
    flags = flags_of_run()
    for model in MODELS:
        for name, info in model.model_fields.items():
            if not info.is_required() and info.default not in (None, (), {}):
                assert flags[name].help.endswith(f"Default: {info.default}")


# From flags to settings.


def test_each_setting_of_the_models_has_a_flag_of_its_name():
    wanted = {name for model in MODELS for name in model.model_fields} - {"columns"}
    wanted |= {column_flag(name) for name in COLUMNS} | {"chunker", "preset", "set", "config", "beam_args"}

    assert flags_of_run().keys() - set(Chunker.model_fields) == wanted


def test_no_name_is_used_by_two_models():
    names = [name for model in (*MODELS, Chunker) for name in model.model_fields]

    assert len(names) == len(set(names))


def test_what_is_not_given_has_the_default_of_the_model():
    made = settings()

    assert made.job == JobSettings(input=("in/*.md",), output="out")
    assert made.read == ReadSettings()
    assert made.parse == ParseSettings()
    assert made.chunker.fingerprint() == get_chunker("recursive").fingerprint()
    assert made.beam_args == ()


def test_defaults_of_a_strategy_are_its_own():
    assert settings(chunker="heading_aware").chunker.chunk_overlap == 64
    assert settings(chunker="token").chunker.chunk_size == 256


def test_values_arrive_as_text_and_become_what_the_model_says():
    made = settings(workers="3", max_error_rate="0.25", shards="7", max_document_bytes="10", chunk_size="99")

    assert (made.job.workers, made.job.max_error_rate, made.job.shards) == (3, 0.25, 7)
    assert (made.read.max_document_bytes, made.chunker.chunk_size) == (10, 99)


@pytest.mark.parametrize(("overlap", "tokens"), [("10", 10), ("0.25", 25), ("0", 0)])
def test_overlap_is_tokens_or_a_share(overlap, tokens):
    assert settings(chunk_size="100", chunk_overlap=overlap).chunker.chunk_overlap == tokens


def test_column_flags_map_document_columns():
    made = settings(id_column="key", text_column="body", title_column="")

    assert made.read.columns == {"document_id": "key", "text": "body", "title": ""}


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ('separators=["\\n\\n", [". ", "? "]]', (("\n\n",), (". ", "? "))),
        ("separators=null", None),
        ("min_chunk_size=5", 5),
        (" min_chunk_size =5", 5),
    ],
)
def test_set_reaches_any_setting_of_the_chunker_with_a_value_in_yaml(item, value):
    assert getattr(settings(set=[item]).chunker, item.partition("=")[0].strip()) == value


def test_of_two_values_for_one_key_of_set_the_last_counts():
    assert settings(set=["min_chunk_size=5", "min_chunk_size=6"]).chunker.min_chunk_size == 6


def test_recorded_settings_leave_out_where_and_how_fast_a_run_is():
    plain = settings().recorded()

    assert settings(workers=2, runner="SparkRunner", output="elsewhere", report="r.json").recorded() == plain
    assert settings(chunk_size=100).recorded() != plain
    assert settings(keep_text=True).recorded() != plain


@pytest.mark.parametrize(
    ("flags", "setting", "value"),
    [
        ({"chunk_size": "0"}, "chunk_size", "0"),
        ({"chunk_size": "many"}, "chunk_size", "many"),
        ({"chunk_size": "64", "chunk_overlap": "64"}, "chunk_overlap", 64),
        ({"chunk_overlap": "1.5"}, "chunk_overlap", "1.5"),
        ({"chunker": "sorcery"}, "chunker", "sorcery"),
        ({"tokenizer": "no_such_encoding"}, "tokenizer", "no_such_encoding"),
        ({"set": ["colour=red"]}, "colour", "red"),
        ({"set": ["split_level=2"]}, "split_level", 2),
        ({"set": ["min_chunk_size"]}, "set", "min_chunk_size"),
        ({"set": ["separators=["]}, "set", "separators=["),
        ({"set": ["chunk_size=5"], "chunk_size": "6"}, "set", "chunk_size=5"),
        ({"mode": "replace"}, "mode", "replace"),
        ({"workers": "0"}, "workers", "0"),
        ({"shards": "0"}, "shards", "0"),
        ({"max_error_rate": "2"}, "max_error_rate", "2"),
        ({"run_id": "a/b"}, "run_id", "a/b"),
        ({"charset": "klingon"}, "charset", "klingon"),
        ({"on_undecodable": "pray"}, "on_undecodable", "pray"),
        ({"max_text_bytes": "0"}, "max_text_bytes", "0"),
        ({"input_format": "csv"}, "input_format", "csv"),
        ({"input": []}, "input", []),
        ({"output": ""}, "output", ""),
        ({"colour": "red"}, "colour", "red"),
    ],
)
def test_refusal_names_the_setting_and_the_value(flags, setting, value):
    with pytest.raises(ConfigError) as refused:
        settings(**flags)

    assert (refused.value.setting, refused.value.value) == (setting, value)
    assert str(refused.value).startswith(f"{setting}={value!r}: ")


@pytest.mark.parametrize("needed", ["input", "output"])
def test_what_is_needed_is_asked_for(needed):
    with pytest.raises(ConfigError, match=f"give --{needed}"):
        run_settings({name: value for name, value in NEEDED.items() if name != needed})


def test_a_chunker_is_made_of_flags_among_others():
    assert make_chunker({"chunker": "token", "output": "out", "chunk_size": 9}).chunk_size == 9


# Files.


def test_a_file_holds_flags_by_name(tmp_path):
    made = from_file(
        tmp_path,
        """
        input: [docs, more/*.parquet]
        output: gs://bucket/table
        chunker: heading
        chunk_size: 128
        set: {split_level: 3}
        mode: append
        id_column: key
        keep_text: true
        metadata_columns: [author]
        beam_args: [--region=europe-west1]
        """,
    )

    assert made.job.input == ("docs", "more/*.parquet")
    assert (made.job.output, made.job.mode, made.job.keep_text) == ("gs://bucket/table", "append", True)
    assert (made.chunker.name, made.chunker.chunk_size, made.chunker.split_level) == ("heading", 128, 3)
    assert made.read.columns == {"document_id": "key"}
    assert made.read.metadata_columns == ("author",)
    assert made.beam_args == ("--region=europe-west1",)


def test_flags_win_over_the_file(tmp_path):
    made = from_file(
        tmp_path,
        "input: [a]\noutput: b\nchunk_size: 100\nworkers: 2\ncolumns: {text: body, title: name}\n",
        input=["c"],
        chunk_size="50",
        text_column="content",
    )

    assert (made.job.input, made.job.output, made.job.workers) == (("c",), "b", 2)
    assert made.chunker.chunk_size == 50
    assert made.read.columns == {"text": "content", "title": "name"}


def test_flags_win_over_the_file_key_by_key_of_set(tmp_path):
    made = from_file(
        tmp_path,
        "input: a\noutput: b\nset: {min_chunk_size: 3, separators: [x]}\n",
        set=["min_chunk_size=7"],
    )

    assert made.chunker.min_chunk_size == 7
    assert made.chunker.separators == (("x",),)


def test_one_string_stands_for_a_list_of_one(tmp_path):
    made = from_file(
        tmp_path, "input: a\noutput: b\nmetadata_columns: c\nbeam_args: --x\nset: min_chunk_size=2\n"
    )

    assert (made.job.input, made.read.metadata_columns, made.beam_args) == (("a",), ("c",), ("--x",))
    assert made.chunker.min_chunk_size == 2


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("input: [", "config"),
        ("- a\n- b", "config"),
        ("just words", "config"),
        ("", "config"),
        ("5: six", "config"),
        ("colour: red", "colour"),
        ("inputs: [a]", "inputs"),
        ("set:", "set"),
        ("set: {5: 6}", "set"),
        ("set: [5]", "set"),
        ("set: {colour: red}", "colour"),
        ("beam_args:", "beam_args"),
        ("beam_args: [1]", "beam_args"),
        ("chunker: [token]", "chunker"),
        ("chunker: {name: token}", "chunker"),
        ("chunk_size: [1]", "chunk_size"),
        ("columns: 5\nid_column: key", "columns"),
        ("columns: {body: text}", "columns"),
        ("workers: two", "workers"),
        ("workers: true", "workers"),
        ("max_vanished: yes", "max_vanished"),
        ("report: 5", "report"),
        ("metadata_columns: 5", "metadata_columns"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_by_the_name_of_what_is_wrong(tmp_path, text, setting):
    with pytest.raises(ConfigError) as refused:
        from_file(tmp_path, text, **NEEDED)

    assert refused.value.setting == setting


def test_a_file_that_is_not_there_or_not_text_is_refused_by_its_name(tmp_path):
    with pytest.raises(ConfigError, match=r"config='.*none.yaml': cannot be read: No such file"):
        run_settings(NEEDED, str(tmp_path / "none.yaml"))
    (tmp_path / "job.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"config='.*job.yaml': is not YAML"):
        run_settings(NEEDED, str(tmp_path / "job.yaml"))


def test_modes_of_the_flag_are_those_of_the_table():
    assert tuple(flags_of_run()["mode"].choices) == get_args(options.WriteMode)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_sets_the_strategy_and_its_settings(preset: str) -> None:
    chunker = make_chunker({"preset": preset})
    assert chunker.name == PRESETS[preset].strategy
    assert {key: getattr(chunker, key) for key in PRESETS[preset].settings if key != "fallback"} == {
        key: value for key, value in PRESETS[preset].settings.items() if key != "fallback"
    }


def test_what_is_given_besides_a_preset_wins() -> None:
    chunker = make_chunker({"preset": "agrag-heading", "chunk_size": "99", "set": ["split_level=4"]})
    assert chunker == get_chunker("heading", chunk_size=99, split_level=4, fallback="recursive")


def test_a_preset_and_another_strategy_are_refused() -> None:
    with pytest.raises(ConfigError, match="chunker='recursive': preset agrag-token is of the strategy token"):
        make_chunker({"preset": "agrag-token", "chunker": "recursive"})


def test_an_unknown_preset_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ConfigError, match="preset='ragfow': unknown preset; known are rag-chunker"):
        make_chunker({"preset": "ragfow"})
