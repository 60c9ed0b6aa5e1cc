"""The job file: one word instead of SOURCE, DEST and settings, and one line about each mistake."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from compactor.errors import InvalidInput
from compactor.settings.settings import Settings
from compactor_cli.commands import COMMANDS, command, main, runs
from compactor_cli.jobs import JOB_FILE, read_job, require_free, save_job
from compactor_cli.parameters import fields_from
from tests.support.typed_commands import parsed

SOURCE, DESTINATION = "s3://logs/raw/*/", "s3://lake/out/"
PLACES = f's3_source_uri = "{SOURCE}"\ns3_destination_uri = "{DESTINATION}"\n'
LOGS = f"""\
[logs]
{PLACES}date_format = "%Y/%m/%d"
window = "today-7..today"
include = ["*.json", "*.gz"]
retry_quarantined = false
endpoint_url = "http://127.0.0.1:9000"

[flat]
{PLACES}depth = 2
"""


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / JOB_FILE).write_text(LOGS)
    return tmp_path


def fields(*words: str) -> dict[str, Any]:
    return fields_from(parsed(*words))


@pytest.mark.parametrize("path", ["plan", "run", "runs start"])
def test_a_name_stands_for_source_destination_and_every_setting(path: str) -> None:
    found = fields(*path.split(), "logs")
    assert found == {
        "s3_source_uri": SOURCE,
        "s3_destination_uri": DESTINATION,
        "date_format": "%Y/%m/%d",
        "window": "today-7..today",
        "include": ["*.json", "*.gz"],
        "retry_quarantined": False,
    }
    assert Settings.from_input(found).window == "today-7..today"


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "logs"),
        ("clean-up", "logs"),
        ("ls", "logs", "raw/"),
        ("restore", "--all", "logs"),
        ("table", "refresh", "logs"),
    ],
)
def test_commands_take_from_a_job_what_they_have_options_for(words: tuple[str, ...]) -> None:
    found = parsed(*words)
    assert found.s3_destination_uri == DESTINATION
    assert getattr(found, "s3_source_uri", SOURCE) == SOURCE
    assert found.endpoint_url == "http://127.0.0.1:9000"
    assert not hasattr(found, "date_format") or found.date_format == "%Y/%m/%d"


def test_further_words_stay_where_they_are() -> None:
    assert parsed("ls", "logs", "raw/", "--since", "7d").pattern == "raw/"


def test_options_override_a_job_and_a_window_replaces_its_window() -> None:
    assert fields("plan", "--window=today-2..today-1", "logs")["window"] == "today-2..today-1"
    assert fields("plan", "logs", "--window", "3d")["window"] == "3d"
    found = fields("plan", "logs", "--depth", "1")
    assert (found["depth"], found.keys() & {"date_format", "window"}) == (1, set())
    found = fields("plan", "flat", "--settle-seconds", "0")
    assert (found["depth"], found["settle_seconds"]) == (2, 0)


def test_another_file_can_be_named(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / JOB_FILE).rename(directory / "other.toml")
    assert fields("plan", "--job-file", "other.toml", "flat")["depth"] == 2
    assert fields("plan", "flat", "--job-file=other.toml")["depth"] == 2
    for words in (
        ("--job-file", "other.toml", "plan", "x"),
        ("plan", "x", "--job-file=other.toml"),
    ):
        assert main([*words]) == 2
        assert "other.toml has logs, flat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "run_id"),
    [
        (("20261121T060102Z-1a2b3c",), "20261121T060102Z-1a2b3c"),
        (("3f2504e0-4f89-11d3-9a0c-0305e82c3301",), "3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
        (("nightly", "--stack", "mine"), "nightly"),
        (("nightly", "--region", "eu-west-1"), "nightly"),
        ((), None),
    ],
)
def test_the_run_of_a_deployed_stack_is_no_job(words: tuple[str, ...], run_id: str | None) -> None:
    args = parsed("runs", "show", *words)
    assert runs.place_of(args) is None
    assert args.run_id == run_id


def test_a_run_of_the_stack_in_the_environment_is_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACTOR_STACK", "mine")
    assert runs.place_of(parsed("runs", "show", "nightly")) is None


def test_the_runs_of_a_job_are_where_its_settings_say() -> None:
    args = parsed("runs", "show", "logs", "r1")
    place = runs.place_of(args)
    assert place is not None
    assert (place[0].uri, place[1]) == ("s3://lake/_compactor/out/", "http://127.0.0.1:9000")
    assert args.run_id == "r1"
    args = parsed("runs", "show", "nightly", "--state-uri", "s3://lake/_compactor/")
    place = runs.place_of(args)
    assert place is not None
    assert (place[0].uri, args.run_id) == ("s3://lake/_compactor/", "nightly")


@pytest.mark.parametrize("has_file", [True, False])
def test_runs_show_answers_a_job_that_is_not_there_as_run_does_and_asks_no_stack(
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    has_file: bool,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("no stack is looked up")

    monkeypatch.setattr("compactor_cli.commands.runs.deployed_stack", refuse)
    if not has_file:
        (directory / JOB_FILE).unlink()
    answers = []
    for words in (["run"], ["runs", "show"]):
        assert main([*words, "log"]) == 2
        answers.append(capsys.readouterr().err.partition(": 'log' ")[2])
    assert answers[1] == answers[0].replace("of a job", "of a job, or a run with its --stack", 1)
    advice = "did you mean logs?" if has_file else "compactor scan SOURCE --save log writes one"
    assert answers[0].endswith(f"{advice}\n")


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("[x]\n" + PLACES + "dept = 3", "compactor.toml [x] dept: 3 "),
        ("[x]\n" + PLACES + 'start = "yesterday"', "compactor.toml [x] start: 'yesterday' "),
        ("[x]\n" + PLACES + "depth = true", "compactor.toml [x] depth: True "),
        ("[x]\n" + PLACES + "include = [1]", "compactor.toml [x] include: [1] "),
        (
            "[x]\n" + PLACES + 'endpoint_url = "nowhere"',
            "compactor.toml [x] endpoint_url: 'nowhere' ",
        ),
        ("[x]\n" + PLACES + "end = 2026-01-31", "compactor.toml [x] end: '2026-01-31' "),
        ("[x]\ndepth = 1", "compactor.toml [x] s3_source_uri: no value"),
        ('x = "s3://logs/raw/"', "compactor.toml x: 's3://logs/raw/' "),
        ("[x", "job file: 'compactor.toml' is not accepted; expected a TOML file ("),
        ("[logz]\n" + PLACES, "compactor.toml has logz"),
        ("", "compactor.toml has none"),
        (None, "there is no compactor.toml"),
    ],
)
def test_a_mistake_is_one_line_with_file_field_value_and_what_is_accepted(
    directory: Path, capsys: pytest.CaptureFixture[str], job: str | None, expected: str
) -> None:
    (directory / JOB_FILE).unlink()
    if job is not None:
        (directory / JOB_FILE).write_text(job)
    assert main(["plan", "x"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert expected in error
    assert "expected" in error


def test_a_misspelt_job_is_answered_with_the_likeliest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "log"]) == 2
    assert "compactor.toml has logs, flat; did you mean logs?" in capsys.readouterr().err


def test_a_saved_job_is_read_back_as_it_was_and_appended_to_the_others(directory: Path) -> None:
    file = directory / JOB_FILE
    saved = {
        "s3_source_uri": 's3://logs/it\'s "ä" \x7f\\*/',
        "s3_destination_uri": DESTINATION,
        "depth": 2,
        "delete_after": "1.5d",
        "include": ["*.gz", 'a"b'],
    }
    lines = ["formats = [", "  # why", '  {match = "*.txt", format = "text"},', "]"]
    save_job(file, "new-1", saved, lines)
    declared = {"formats": [{"match": "*.txt", "format": "text"}]}
    assert tomllib.loads(file.read_text())["new-1"] == saved | declared
    assert tomllib.loads(file.read_text())["logs"]["window"] == "today-7..today"
    assert read_job(file, "flat") is not None


@pytest.mark.parametrize("name", ["logs", "a b", "", "ä", "s3://x/", "-x", "a.b"])
def test_a_name_that_is_taken_or_invalid_is_refused_before_anything_is_read(
    directory: Path, name: str
) -> None:
    with pytest.raises(InvalidInput, match="--save"):
        require_free(directory / JOB_FILE, name)
    require_free(directory / "absent.toml", "logs")


def test_every_command_with_a_destination_takes_a_job() -> None:
    taking = {
        path
        for path in COMMANDS
        if any(one.name in ("where", "s3_destination_uri") for one in command(path).params)
    }
    assert taking >= {"plan", "run", "verify", "ls", "restore", "runs show", "clean-up"}
    assert "maintain run" not in taking
