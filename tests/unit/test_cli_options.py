from __future__ import annotations

import pytest

from compactor.errors import InvalidInput
from compactor.settings.fields import FIELDS
from compactor.settings.settings import Settings
from compactor_cli.parameters import fields_from
from compactor_cli.whole import default_workers
from tests.support.typed_commands import parsed

PLACES = ["s3://source/logs/", "s3://lake/compacted/"]


def given(*words: str) -> dict[str, object]:
    return fields_from(parsed("plan", *PLACES, *words))


def test_without_options_only_the_two_places_are_given():
    assert given() == {"s3_source_uri": PLACES[0], "s3_destination_uri": PLACES[1]}


def test_every_field_has_an_option_named_like_it():
    for name, spec in FIELDS.items():
        option = "--" + name.replace("_", "-")
        if name.endswith("_uri"):
            continue
        if isinstance(spec.default, bool):
            assert given(option)[name] is True, name
        elif isinstance(spec.default, tuple) and name != "formats":
            assert given(option, "*.json")[name] == ["*.json"], name
        else:
            with pytest.raises(InvalidInput) as caught:
                given(option, "")
            assert caught.value.field == name


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--settle-seconds", "60"], "settle_seconds", 60),
        (["--delete-after", "0.5d"], "delete_after", "0.5d"),
        (["--delete-after", "7d"], "delete_after", "7d"),
        (["--date-format", "%Y/%m/%d"], "date_format", "%Y/%m/%d"),
        (["--parquet-schema", "2026"], "parquet_schema", "2026"),
        (["--include", "*.gz", "--include", "*.json"], "include", ["*.gz", "*.json"]),
        (["--formats", '[{"format": "text"}]'], "formats", [{"format": "text"}]),
        (["--formats", "text"], "formats", "text"),
        (["--no-retry-quarantined"], "retry_quarantined", False),
        (["--state-uri", "s3://state/here/"], "s3_state_uri", "s3://state/here/"),
    ],
)
def test_an_option_gives_what_the_json_input_has(words, name, value):
    found = given(*words)[name]
    assert (type(found), found) == (type(value), value)


def test_settings_take_what_the_options_give():
    words = ["--date-format", "%Y/%m/%d", "--window", "2026-01-01..", "--min-objects", "2"]
    settings = Settings.from_input(given(*words))
    assert (settings.date_format, settings.window, settings.min_objects) == (
        "%Y/%m/%d",
        "2026-01-01..",
        2,
    )


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "1e3", ""])
def test_a_number_that_is_invalid_is_refused_with_the_name_of_its_field(text):
    with pytest.raises(InvalidInput, match="settle_seconds") as caught:
        given(f"--settle-seconds={text}")
    assert caught.value.value == text


@pytest.mark.parametrize(("cpus", "workers"), [(1, 2), (2, 4), (3, 4), (4, 4), (16, 16)])
def test_a_small_machine_has_more_worker_processes_than_cpus(
    monkeypatch: pytest.MonkeyPatch, cpus: int, workers: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cpus)), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert default_workers() == workers
