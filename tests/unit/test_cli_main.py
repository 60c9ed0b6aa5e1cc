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
from compactor_cli.command_line import Action
from compactor_cli.failures import Failure
from compactor_local import EngineError


@pytest.fixture
def command(monkeypatch):
    """A command that ends as the test says."""

    def ends_with(outcome):
        def run(args):
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        module = SimpleNamespace(run=Action(run, []))
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
    assert cli.main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: compactor ")


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_it_prints_its_version(capsys, option):
    assert cli.main([option]) == 0
    assert capsys.readouterr().out == f"compactor {__version__}\n"


def test_a_long_message_of_an_engine_is_cut_unless_it_is_asked_for(monkeypatch, capsys):
    def run(args):
        try:
            raise ValueError("stack trace")
        except ValueError as error:
            raise IntegrityError("x" * 5_000) from error

    module = SimpleNamespace(run=Action(run, []))
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

    module = SimpleNamespace(run=Action(run, []))
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

    module = SimpleNamespace(run=Action(run, []))
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
        "from compactor_cli.command_line import Action\n"
        "def run(args):\n"
        "    print('working', flush=True)\n"
        "    time.sleep(600)\n"
        "module = types.SimpleNamespace(run=Action(run, []))\n"
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
        ["runs"],
        ["ls"],
        ["plan", "s3://src/b/", "s3://dst/d/", "--no-such-option"],
        ["run", "s3://src/b/", "s3://dst/d/", "--workers", "0"],
        ["run", "s3://src/b/", "s3://dst/d/", "--workers", "two"],
        ["demo", "--objects", "many"],
    ],
)
def test_wrong_usage_is_one_line_that_names_the_help(capsys, words):
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "--help" in err


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["run"], "s3_source_uri"),
        (["plan"], "s3_source_uri"),
        (["run", "s3://src/b/"], "s3_destination_uri"),
        (["run", "s3://src/b/", "s3://src/b/c/"], "s3_destination_uri"),
        (["run", "--input", "/does/not/exist.json"], "--input"),
        (["run", "s3://src/b/", "s3://dst/d/", "--input", "x.json"], "--input"),
        (["plan", ".", "s3://dst/d/"], "s3_source_uri"),
        (["plan", "s3://src/b/", "s3://dst/d/", "--window", "3d"], "window"),
        (["verify", "s3://src/b/", "c"], "s3_destination_uri"),
        (["restore", "s3://dst/d/"], "KEY"),
        (["restore", "s3://dst/d/", "one", "--prefix", "o", "-o", "back"], "KEY"),
        (["restore", "s3://dst/d/", "--prefix", "o"], "--output"),
        (["restore", "s3://dst/d/", "one", "--overwrite"], "--overwrite"),
        (["restore", "s3://dst/d/", "one", "two"], "--output"),
        (["restore", "s3://dst/d/", "one", "--json"], "--json"),
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


def helped(capsys, monkeypatch, *words: str) -> str:
    """A help as one sees it in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([*words]) == 0
    return str(capsys.readouterr().out)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_every_command_shows_examples_and_what_there_is_beside(
    capsys, monkeypatch, name
):
    brief = helped(capsys, monkeypatch, *name.split(), "--help")
    assert f"  compactor {name}" in brief
    assert brief.count("\n") < 75
    full = helped(capsys, monkeypatch, *name.split(), "--help-all")
    if len(full) > len(brief):
        assert f"all options, and what each accepts: compactor {name} --help-all" in brief
    options = [set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE)) for text in (brief, full)]
    assert options[0] <= options[1]


def test_the_help_of_the_program_names_every_command_in_its_section(capsys, monkeypatch):
    text = helped(capsys, monkeypatch, "--help")
    for name, entry in cli.COMMANDS.items():
        assert re.search(rf"\n{entry.section}:\n(  .*\n)*  {name} ", text), name
    assert "exit codes:" in text


@pytest.mark.parametrize("name", ["plan", "run", "runs start"])
def test_the_short_help_has_what_a_first_run_needs(capsys, monkeypatch, name):
    brief = helped(capsys, monkeypatch, *name.split(), "--help")
    for option in ("--date-format", "--window", "--depth", "--settle-seconds", "--delete-after"):
        assert f"  {option} " in brief
    full = helped(capsys, monkeypatch, *name.split(), "--help-all")
    for field in set(FIELDS) - {"s3_source_uri", "s3_destination_uri", "s3_state_uri"}:
        assert f"--{field.replace('_', '-')}" in full


def test_a_shell_gets_completions_and_the_script_that_asks_for_them(capsys, monkeypatch):
    monkeypatch.setenv("_COMPACTOR_COMPLETE", "bash_source")
    assert cli.main([]) == 0
    assert "_COMPACTOR_COMPLETE=bash_complete" in capsys.readouterr().out
    monkeypatch.setenv("_COMPACTOR_COMPLETE", "bash_complete")
    for words, at, expected in (
        ("compactor r", 1, {"run", "runs", "restore", "repair"}),
        ("compactor runs s", 2, {"start", "show"}),
        ("compactor plan --date", 2, {"--date-format"}),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(at))
        assert cli.main([]) == 0
        found = {line.partition(",")[2] for line in capsys.readouterr().out.splitlines()}
        assert found == expected


def test_help_answers_without_loading_s3_or_the_engine():
    code = (
        "import sys\n"
        "from compactor_cli.commands import main\n"
        "main(['--help'])\n"
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
        (["pln"], "compactor: No such command 'pln'. (Did you mean one of: 'explain', 'plan'?)"),
        (["zzz"], "compactor: No such command 'zzz'. (try compactor --help)"),
        (
            ["plan", "--setle-seconds", "3", "s3://aaa/b/", "s3://ccc/d/"],
            "Did you mean '--settle-seconds'? (try compactor plan --help)",
        ),
        (
            ["maintain", "plan", "--jsno"],
            "compactor maintain plan: No such option '--jsno'. Did you",
        ),
        (["maintain", "pln"], "Did you mean 'plan'? (try compactor maintain --help)"),
        (["runs", "show", "--zzzzzzzz"], "No such option '--zzzzzzzz'. (try compactor runs show"),
    ],
)
def test_a_word_that_is_not_known_is_answered_with_the_likeliest_that_is(capsys, typed, told):
    assert cli.main(typed) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
