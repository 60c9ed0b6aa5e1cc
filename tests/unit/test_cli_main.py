from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import datetime
from types import SimpleNamespace

import pytest
from botocore.exceptions import EndpointConnectionError

from compactor import __version__
from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.settings.fields import FIELDS
from compactor_cli import commands as cli
from compactor_cli import console
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.table import ACTIONS as TABLE_ACTIONS
from compactor_cli.commands.tables import ACTIONS as TABLES_ACTIONS
from compactor_local import EngineError


@pytest.fixture
def command(monkeypatch):
    """A command that ends as the test says."""

    def ends_with(outcome):
        def run(args):
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        module = SimpleNamespace(add_arguments=lambda parser: None, run=run)
        monkeypatch.setattr(cli, "import_module", lambda name: module)
        return cli.main(["plan"])

    return ends_with


@pytest.mark.parametrize(
    ("outcome", "code", "line"),
    [
        (InvalidInput("depth", -1, "more"), 2, "InvalidInput: depth: -1 is not accepted"),
        (IntegrityError("two\nlines"), 1, "IntegrityError: two lines"),
        (TransientStoreError("slow down"), 1, "TransientStoreError: slow down"),
        (EngineError("no interpreter"), 1, "EngineError: no interpreter"),
        (EndpointConnectionError(endpoint_url="http://x"), 1, "EndpointConnectionError: "),
        (PermissionError("not yours"), 1, "PermissionError: not yours"),
        (Failure("PartitionsFailed: a/"), 1, "PartitionsFailed: a/"),
        (Failure("InvalidInput: depth", 2), 2, "InvalidInput: depth"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_a_person_can_act_on_is_one_line_and_an_exit_code(
    command, capsys, outcome, code, line
):
    assert command(outcome) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"compactor: {line}")
    assert err.count("\n") == 1


def test_without_words_it_prints_its_help(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: compactor ")


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_it_prints_its_version(capsys, option):
    with pytest.raises(SystemExit):
        cli.main([option])
    assert capsys.readouterr().out == f"compactor {__version__}\n"


def test_a_long_message_of_an_engine_is_cut_unless_it_is_asked_for(monkeypatch, capsys):
    def run(args):
        try:
            raise ValueError("stack trace")
        except ValueError as error:
            raise IntegrityError("x" * 5_000) from error

    module = SimpleNamespace(add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr(cli, "import_module", lambda name: module)
    assert cli.main(["plan"]) == 1
    err = capsys.readouterr().err
    assert (err.count("\n"), len(err) < 1_100) == (1, True)
    assert err.endswith("(all of it: -v)\n")
    for words in (["-v", "plan"], ["plan", "--verbose"]):
        assert cli.main(words) == 1
        err = capsys.readouterr().err
        assert "x" * 5_000 in err
        assert "\n  caused by ValueError: stack trace\n" in err
    assert cli.main(["plan"]) == 1
    assert "caused by" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--log-format", "json", "plan"], ["plan", "--log-format=json"]])
def test_messages_are_json_on_request(monkeypatch, capsys, words):
    def run(args):
        console.print_note("looking\n", done=3)
        raise Failure("it failed", 1, "repair it")

    module = SimpleNamespace(add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr(cli, "import_module", lambda name: module)
    assert cli.main(words) == 1
    note, error = map(json.loads, capsys.readouterr().err.splitlines())
    assert datetime.fromisoformat(note.pop("time")).tzinfo is not None
    assert note == {"level": "info", "message": "looking\n", "done": 3}
    assert error.pop("time")
    assert error == {"level": "error", "message": "it failed", "advice": "repair it"}


@pytest.mark.parametrize("words", [["-q", "plan"], ["plan", "--quiet"]])
def test_quiet_prints_errors_only(monkeypatch, capsys, words):
    def run(args):
        console.print_note("looking")
        with console.progress("waiting") as bar:
            bar.show(1, 2)
        console.print_line("result")
        raise Failure("it failed")

    module = SimpleNamespace(add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr(cli, "import_module", lambda name: module)
    assert cli.main(words) == 1
    assert capsys.readouterr() == ("result\n", "compactor: it failed\n")


def test_a_table_has_no_frames_where_there_is_no_terminal(capsys):
    key = "k" * 300
    console.print_table("Title", ("Key", "Objects"), ((key, "1"), ("b\n", "2,000")))
    lines = capsys.readouterr().out.splitlines()
    rest = ["Title", "Key".ljust(300) + "  Objects", key + "        1"]
    assert lines == [*rest, "b\\n".ljust(300) + "    2,000"]


def test_sigterm_interrupts_as_ctrl_c_does(tmp_path):
    code = (
        "import sys, time, types\n"
        "from compactor_cli import commands as cli\n"
        "def run(args):\n"
        "    print('working', flush=True)\n"
        "    time.sleep(600)\n"
        "module = types.SimpleNamespace(add_arguments=lambda parser: None, run=run)\n"
        "cli.import_module = lambda name: module\n"
        "sys.exit(cli.main(['plan']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.terminate()
    assert process.communicate(timeout=60)[1] == "compactor: interrupted; committed work is kept\n"
    assert process.returncode == 130


def test_a_defect_is_not_hidden(command):
    with pytest.raises(ZeroDivisionError):
        command(ZeroDivisionError())


def test_success_says_nothing_more(command, capsys):
    assert command(0) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "words",
    [
        ["bogus"],
        ["plan"],
        ["plan", "s3://src/b/", "s3://dst/d/", "--no-such-option"],
        ["run", "s3://src/b/", "s3://dst/d/", "--workers", "0"],
        ["run", "s3://src/b/", "s3://dst/d/", "--workers", "two"],
        ["demo", "--objects", "many"],
    ],
)
def test_wrong_usage_is_one_line_that_names_the_help(capsys, words):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "--help" in err


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["run"], "s3_source_uri"),
        (["run", "s3://src/b/"], "s3_destination_uri"),
        (["run", "s3://src/b/", "s3://src/b/c/"], "s3_destination_uri"),
        (["run", "--input", "/does/not/exist.json"], "--input"),
        (["run", "s3://src/b/", "s3://dst/d/", "--input", "x.json"], "--input"),
        (["plan", ".", "s3://dst/d/"], "s3_source_uri"),
        (["plan", "s3://src/b/", "s3://dst/d/", "--duration", "3"], "duration"),
        (["verify", "s3://src/b/", "c"], "s3_destination_uri"),
        (["restore", "s3://dst/d/"], "KEY"),
        (["restore", "s3://dst/d/", "one", "--prefix", "o", "-o", "back"], "KEY"),
        (["restore", "s3://dst/d/", "--prefix", "o"], "--output"),
        (["restore", "s3://dst/d/", "one", "--compress"], "--compress"),
        (["restore", "s3://dst/d/", "one", "--overwrite"], "--overwrite"),
        (["restore", "s3://dst/d/", "one", "two"], "--output"),
        (["restore", "s3://dst/d/", "one", "--json"], "--json"),
        (["restore", "s3://dst/d/", "one", "two", "--etag", "e", "-o", "back"], "--etag"),
        (["demo", "--source", "/does/not/exist"], "--source"),
        (["demo", "--objects", "0"], "--objects"),
    ],
)
def test_wrong_input_is_one_line_that_names_the_field(capsys, words, field):
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.removeprefix("compactor: ").removeprefix("InvalidInput: ").startswith(field)
    assert err.count("\n") == 1


@pytest.mark.parametrize("document", ["", "[]", "{", '"text"'])
def test_an_input_that_is_no_json_object_is_refused(capsys, tmp_path, document):
    path = tmp_path / "input.json"
    path.write_text(document)
    assert cli.main(["run", "--input", str(path)]) == 2
    assert "InvalidInput: --input: " in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_every_command_shows_examples_and_exit_codes(capsys, name):
    with pytest.raises(SystemExit) as caught:
        cli.main([name, "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert f"  compactor {name} " in out
    assert "exit codes:" in out


def helped(capsys, monkeypatch, *words: str) -> str:
    """A help as one sees it in a terminal of 80 columns, which folds what is longer."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as caught:
        cli.main([*words])
    assert caught.value.code == 0
    return "\n".join(
        line[at : at + 80]
        for line in capsys.readouterr().out.splitlines()
        for at in range(0, max(1, len(line)), 80)
    )


ACTIONS = [("table", one) for one in TABLE_ACTIONS] + [("tables", one) for one in TABLES_ACTIONS]


@pytest.mark.parametrize("words", [(), *((name,) for name in cli.COMMANDS), *ACTIONS])
def test_the_help_of_every_command_fits_one_screen_and_the_rest_is_one_option_away(
    capsys, monkeypatch, words
):
    brief = helped(capsys, monkeypatch, *words, "--help")
    assert brief.count("\n") < 40
    full = helped(capsys, monkeypatch, *words, "--help-all")
    if brief != full:
        way = " ".join(("compactor", *words, "--help-all"))
        assert f"all options, and what each accepts: {way}" in brief
        assert full.count("\n") >= 40
    options = [set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)) for text in (brief, full)]
    assert options[0] <= options[1]


@pytest.mark.parametrize("name", ["plan", "run", "start"])
def test_the_short_help_has_what_a_first_run_needs(capsys, monkeypatch, name):
    brief = helped(capsys, monkeypatch, name, "--help")
    for option in ("--date-format", "--duration", "--depth", "--settle-seconds", "--clean-up"):
        assert f"  {option} " in brief
    full = helped(capsys, monkeypatch, name, "--help-all")
    for field in set(FIELDS) - {"s3_source_uri", "s3_destination_uri"}:
        assert f"--{field.replace('_', '-')}" in full


def test_help_answers_without_loading_s3_or_the_engine():
    code = (
        "import sys\n"
        "from compactor_cli.commands import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('boto3', 'moto', 'rich', 'pycurl') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["pln"], "compactor: there is no command 'pln'; did you mean plan?"),
        (["zzz"], "compactor: there is no command 'zzz' (try"),
        (
            ["plan", "--setle-seconds", "3", "s3://aaa/b/", "s3://ccc/d/"],
            "compactor plan: unknown option --setle-seconds; did you mean --settle-seconds?",
        ),
        (
            ["tables", "scan", "--jsno=yes"],
            "compactor tables scan: unknown option --jsno; did you mean --json?",
        ),
        (["tables", "scn"], "'accept'); did you mean scan?"),
        (
            ["report", "--zzzzzzzz"],
            "compactor report: unknown option --zzzzzzzz (try compactor report",
        ),
    ],
)
def test_a_word_that_is_not_known_is_answered_with_the_likeliest_that_is(capsys, typed, told):
    with pytest.raises(SystemExit) as ended:
        cli.main(typed)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
