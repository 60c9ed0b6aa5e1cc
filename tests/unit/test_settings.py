"""The input of a run: defaults, round trips, and one clear error for each mistake."""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import InvalidInput
from compactor.limits import WorkerLimits
from compactor.settings.fields import FIELDS, RunFields
from compactor.settings.settings import Settings
from compactor.sizes import MIB

URIS = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/logs/"}
SEED = {**URIS, "date_format": "%Y/%m/%d", "duration": 7}


def refused(**given: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        Settings.from_input({**URIS, **given})
    return caught.value


def test_the_seed_applications_input_works_as_it_stands() -> None:
    settings = Settings.from_input(
        {
            "s3_source_uri": "s3://source/logs/",
            "s3_destination_uri": "s3://lake/compacted",
            "date_format": "%Y/%m/%d",
            "duration": 7,
        }
    )
    assert settings.window == "7d"
    assert settings.date_format == "%Y/%m/%d"
    assert settings.s3_destination_uri == "s3://lake/compacted/"
    assert settings.s3_state_uri == "s3://lake/_compactor/compacted/"


def test_two_uris_are_enough_and_everything_else_has_its_documented_default() -> None:
    settings = Settings.from_input(URIS)
    given = settings.to_dict()
    for name, spec in FIELDS.items():
        if name not in {*URIS, "s3_state_uri"}:
            expected = list(spec.default) if isinstance(spec.default, tuple) else spec.default
            assert given[name] == expected, name
    assert settings.delete_after is None
    assert (settings.settle_seconds, settings.open_partition_seconds) == (600, 3600)
    assert settings.lambda_max_bytes == 20 << 30
    assert settings.target_bytes is None


def test_every_field_of_the_settings_is_documented_once_and_in_the_same_order() -> None:
    names = [field.name for field in dataclasses.fields(RunFields)]
    assert list(FIELDS) == names
    for spec in FIELDS.values():
        assert spec.meaning.endswith(".")
        assert spec.accepted
        assert spec.section
        assert spec.default_text


def test_what_a_worker_keeps_to_is_no_field_of_the_input() -> None:
    few = replace(Settings.from_input(URIS), limits=WorkerLimits(races=1))
    assert few.to_dict() == Settings.from_input(URIS).to_dict()
    assert Settings.from_input(few.to_dict()).limits == WorkerLimits()
    with pytest.raises(InvalidInput, match="no such field"):
        Settings.from_input({**URIS, "limits": {}})


def test_every_documented_default_is_itself_accepted() -> None:
    for spec in FIELDS.values():
        if not spec.required:
            as_json = json.loads(spec.default_text)
            assert spec.parse(as_json) == spec.default, spec.name


bounded = {
    "settle_seconds": (0, 366 * 86_400),
    "min_objects": (1, 1_000_000),
    "target_bytes": (5 * MIB, 4 * MIB**2),
    "max_concurrency": (1, 10_000),
}
inputs = st.fixed_dictionaries(
    {name: st.just(value) for name, value in SEED.items()},
    optional={
        **{name: st.integers(*bounds) for name, bounds in bounded.items()},
        "include": st.lists(st.text(min_size=1), max_size=3),
        "exclude": st.lists(st.text(min_size=1), max_size=3),
        "retry_quarantined": st.booleans(),
        "formats": st.lists(
            st.sampled_from(
                [
                    {"format": "text", "encoding": "single_byte"},
                    {"match": "a/*", "format": "csv", "header": False, "delimiter": ";"},
                    {"match": "*.t", "format": "tsv", "header": True, "quote": "none"},
                    {"match": "*b", "format": "cloudtrail_lines"},
                ]
            ),
            max_size=3,
        ),
        "compression": st.sampled_from(["same", "none", "gzip", "zstd"]),
        "spark_engine": st.sampled_from(["emr_serverless", "none", "j-2AXXXXXXGAPLF", "j-abc1"]),
        "delete_after": st.sampled_from([None, "0d", "36h", "30d", "1.5w"]),
        "s3_state_uri": st.sampled_from([None, "s3://state/", "s3://lake/state"]),
    },
)


@pytest.mark.slow
@given(inputs)
def test_settings_survive_the_way_through_json(given_input: dict[str, Any]) -> None:
    settings = Settings.from_input(given_input)
    again = Settings.from_input(json.loads(json.dumps(settings.to_dict())))
    assert again == settings
    assert again.to_dict() == settings.to_dict()


@pytest.mark.parametrize(
    "window",
    [
        {"date_format": "/dt=%Y-%m-%d/"},
        {"date_format": "%Y/%j", "window": "2026-01-31.."},
        {"date_format": "%Y/%m", "window": "2026-01-01..2026-12-31"},
        {"date_format": "%Y/%m/%d/%H", "window": "2026-01-31T01:00:00+02:00.."},
        {"depth": 3, "s3_source_uri": "s3://source/logs/*/x-*"},
    ],
)
def test_every_kind_of_window_survives_the_way_through_json(window: dict[str, Any]) -> None:
    settings = Settings.from_input({**URIS, **window})
    assert Settings.from_input(json.loads(json.dumps(settings.to_dict()))) == settings


def test_a_date_format_alone_means_yesterday() -> None:
    assert Settings.from_input({**URIS, "date_format": "%Y/%m/%d"}).window == "1d"


WRONG_VALUES = [
    ("reader_table", "rest:http://x#a.b", "glue:DATABASE.TABLE"),
    ("reader_table", "glue:Lake.logs", "in lower case"),
    ("reader_mode", "all", "exact"),
    ("reader_partitions", ["a", "a"], "each once"),
    ("duration", "7", "a whole number from 1 to 36,500"),
    ("duration", 0, "1 to 36,500"),
    ("duration", -1, "1 to 36,500"),
    ("duration", True, "whole number"),
    ("duration", 1.0, "whole number"),
    ("settle_seconds", -1, "from 0"),
    ("settle_seconds", None, "whole number"),
    ("min_objects", 0, "from 1"),
    ("depth", -1, "from 0 to 32"),
    ("target_bytes", 5 * MIB - 1, "from 5,242,880"),
    ("target_bytes", 4 * MIB**2 + 1, "to 4,398,046,511,104"),
    ("max_concurrency", 10_001, "to 10,000"),
    ("max_concurrency", 0, "from 1"),
    ("spark_engine", "EMR", '"emr_serverless", "none", or'),
    ("spark_engine", None, '"emr_serverless"'),
    ("spark_engine", "", "the id of a running EMR cluster"),
    ("spark_engine", "j-", "such as j-"),
    ("spark_engine", "2AXXXXXXGAPLF", "such as j-"),
    ("spark_engine", "j-2AX/..", "such as j-"),
    ("spark_engine", 7, "such as j-"),
    ("retry_quarantined", 1, "true or false"),
    ("retry_quarantined", "true", "true or false"),
    ("include", "*.gz", "list of globs"),
    ("include", [""], "list of globs"),
    ("exclude", [1], "list of globs"),
    ("exclude", {"a": 1}, "list of globs"),
    ("formats", "avro", "in declaration 1 as format one of json_lines, text, csv"),
    ("formats", None, "the name of a format, or a list"),
    (
        "formats",
        "csv",
        'header: true or false (no text) for csv, as in [{"format": "csv", "header": true}]',
    ),
    ("formats", ["text"], 'an object in declaration 1, such as {"match": "*.log*"'),
    ("formats", [{"format": "text"}, {"format": "csv", "headers": True}], "in declaration 2 only"),
    ("formats", [{"format": "text", "header": True}], "header only with format csv or tsv"),
    ("formats", [{"format": "json_lines", "encoding": "utf-8"}], "encoding only with format text"),
    ("formats", [{"match": "", "format": "text"}], "a glob as match"),
    ("formats", [{"format": "csv", "header": True, "delimiter": "ab"}], "one character"),
    ("formats", [{"format": "csv", "header": True, "quote": "'"}], 'as quote " or none'),
    ("formats", [{"format": "text", "encoding": "utf-16"}], "utf-8 or single_byte"),
    ("compression", "bzip2", '"same", "none", "gzip" or "zstd"'),
    ("compression", ["gzip"], '"gzip"'),
    ("listing", "metadata", "events:TABLE/STREAM"),
    ("listing", "events", "events:TABLE/STREAM"),
    ("listing", "events:table", "events:TABLE/STREAM"),
    ("listing", "list:s3://bucket/", "events:TABLE/STREAM"),
    ("listing", "inventory:s3://bucket/manifest.json", "events:TABLE/STREAM"),
    ("duration", 90.5, "a whole number"),
    ("delete_after", "-1d", "such as 36h, 30d or 2w"),
    ("delete_after", 30, "such as 36h, 30d or 2w"),
    ("delete_after", "30", "such as 36h, 30d or 2w"),
    ("delete_after", "30 fortnights", "such as 36h, 30d or 2w"),
    ("delete_after", "36501d", "of at most 36,500d"),
    ("delete_after", False, "such as 36h, 30d or 2w"),
    ("date_format", "", "such as %Y/%m/%d"),
    ("date_format", 7, "such as %Y/%m/%d"),
    ("date_format", "%Y/%m/%d/%H/%M", "%M is not among them"),
    ("date_format", "%y/%m/%d", "%y is not among them"),
    ("date_format", "%Y/%-m", "%- is not among them"),
    ("date_format", "%Y/%", "% is not among them"),
    ("date_format", "%m/%d", "%Y must be there"),
    ("date_format", "logs", "%Y must be there"),
    ("date_format", "%Y/%d", "%d needs %m"),
    ("date_format", "%Y/%m/%H", "%H needs a day"),
    ("date_format", "%Y//%m", "no empty segment"),
    ("date_format", "%Y/*/%m", "no wildcard"),
    ("s3_source_uri", "s3://bucket/raw/*.json", "chosen by include, such as include *.json"),
    ("window", 7, "such as 7d"),
    ("window", "7", "such as 7d"),
    ("window", "0d", "such as 7d"),
    ("window", "-1d", "such as 7d"),
    ("window", "90.5d", "such as 7d"),
    ("window", "36501d", "at most 36,500d"),
    ("window", "2026-01-31", "START..END"),
    ("window", "..2026-01-31", "START..END"),
    ("window", "2026-01-31...", "START..END"),
    ("window", "yesterday..", "an ISO date"),
    ("window", "20260131..", "an ISO date"),
    ("window", "2026-02-30..", "an ISO date"),
    ("window", "0001-01-01..", "from 1970"),
    ("window", "2026-01-01..9999-12-31T23:59:59-12:00", "an ISO date"),
    ("window", "today+1..", "today or today-N"),
    ("window", "today-..", "today or today-N"),
    ("window", "today-1d..", "today or today-N"),
    ("window", "Today..", "today or today-N"),
]


@pytest.mark.parametrize(("name", "value", "accepted"), WRONG_VALUES)
def test_a_wrong_value_is_refused_by_name(name: str, value: object, accepted: str) -> None:
    error = refused(**{name: value})
    assert error.field == name
    assert error.value is value
    assert accepted in error.accepted
    assert "\n" not in str(error)


CONTRADICTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"duration": 1}, "window", "unless date_format"),
    ({"window": "2026-01-01.."}, "window", "unless date_format"),
    ({**SEED, "window": "2026-01-01.."}, "duration", "either duration or window"),
    ({**SEED, "depth": 1}, "depth", "0 when date_format"),
    (
        {"date_format": "%Y", "window": "2026-01-02..2026-01-01"},
        "window",
        "a START before the END",
    ),
    ({"date_format": "%Y", "window": "today.."}, "window", "START.. ends with yesterday"),
    ({"date_format": "%Y", "window": "today..today-1"}, "window", "a START before the END"),
    (
        {"date_format": "%Y", "window": "2026-01-01T01:00:00..2026-01-01T01:00:00Z"},
        "window",
        "a START before the END",
    ),
    ({"date_format": "%Y/%m/%d/%H", "window": "36500d"}, "window", "at most 100,000 hours"),
    (
        {"date_format": "%Y/%m/%d", "window": "1970-01-01..2999-12-31"},
        "window",
        "at most 100,000 days",
    ),
]


@pytest.mark.parametrize(("given_input", "field", "accepted"), CONTRADICTIONS)
def test_fields_that_contradict_each_other_are_refused(
    given_input: dict[str, Any], field: str, accepted: str
) -> None:
    error = refused(**given_input)
    assert (error.field, accepted in error.accepted) == (field, True), str(error)


@pytest.mark.parametrize("missing", list(URIS))
def test_a_missing_uri_is_named(missing: str) -> None:
    with pytest.raises(InvalidInput, match=rf"{missing}: no value; .*the field is required"):
        Settings.from_input({name: uri for name, uri in URIS.items() if name != missing})


def test_an_unknown_field_is_answered_with_the_nearest_known_one() -> None:
    error = refused(settle_second=1)
    assert error.field == "settle_second"
    assert str(error).endswith("did you mean settle_seconds?")


def test_an_unknown_field_without_a_near_one_is_answered_with_all_that_are_accepted() -> None:
    assert f"known are {', '.join(FIELDS)}" in str(refused(zzz=1))


@pytest.mark.parametrize("not_an_object", [None, [], "s3://source/", 7])
def test_an_input_that_is_no_object_is_refused(not_an_object: object) -> None:
    with pytest.raises(InvalidInput, match=r"input: .* a JSON object"):
        Settings.from_input(not_an_object)


def test_an_eventbridge_event_around_the_input_is_refused_and_says_why() -> None:
    envelope = {"version": "0", "detail-type": "Scheduled Event", "detail": SEED}
    with pytest.raises(InvalidInput, match="not an EventBridge event around them"):
        Settings.from_input(envelope)


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_nothing_but_invalid_input_is_ever_raised(rest: dict[str, Any]) -> None:
    known = dict(zip(list(FIELDS)[2:], rest.values(), strict=False))
    for given_input in ({**URIS, **rest}, {**URIS, **known}):
        # Any other error ends this test.
        with suppress(InvalidInput):
            settings = Settings.from_input(given_input)
            assert Settings.from_input(settings.to_dict()) == settings


@pytest.mark.parametrize(
    "given_input", [{"format": "parquet"}, {"output_format": "parquet"}, {"engine": "worker"}]
)
def test_rows_and_the_largest_partitions_need_no_spark(given_input: dict[str, Any]) -> None:
    Settings.from_input({**URIS, **given_input, "spark_engine": "none"})


@pytest.mark.parametrize(
    ("given_input", "field"),
    [
        ({"engine": "spark"}, "engine"),
        ({"table": "glue:a.b", "upsert_key": ["id"]}, "spark_engine"),
    ],
)
def test_what_needs_spark_is_refused_without_it(given_input: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.from_input({**URIS, **given_input, "spark_engine": "none"})
    assert refused.value.field == field
