"""Whatever is typed: one line, an exit code, never a traceback."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

import click
import pytest

from compactor.settings.fields import FIELDS
from compactor_cli import commands as cli
from compactor_cli.command_line import Command
from compactor_cli.commands import COMMANDS, main
from compactor_cli.commands.documents import read_object
from compactor_cli.failures import Failure

PLACES = ("s3://source-bucket/logs/", "s3://lake-bucket/compacted/")
# What each command needs besides, so that everything of it is read.
WORDS = {
    "demo": (),
    "scan": PLACES,
    "plan": PLACES,
    "run": PLACES,
    "verify": PLACES,
    "ls": PLACES[1:],
    "restore": (*PLACES[1:], "key"),
    "explain": (*PLACES[1:], "key"),
    "doctor": PLACES[1:],
    "clean-up": (*PLACES, "--dry-run"),
    "repair events": (*PLACES, "--listing", "events:table/stream"),
    "repair table": PLACES,
    "runs start": (),
    "runs list": (),
    "runs show": (),
    **dict.fromkeys(("maintain plan", "maintain run"), ("delta:s3://lake-bucket/orders/",)),
    **dict.fromkeys(
        ("table show", "table refresh"), ("--depth=1", "--reader-table=glue:a.b", *PLACES)
    ),
}
VALUES = (
    "", " ", "\t", "\n", "-", "--", "-1", "0", "1", "a\nb", "a\0b", "\udcff\udc80", "\x1b[2J",
    "\u202e", "\ufeff", "%", "%Y%", "%Q", "{}", "[]", "null", '"', "'", "*", "**", "[", "[!",
    "?" * 300, "*a" * 200, "9" * 30, "9" * 5_000, "-" + "9" * 400, "1e999", "-1e999", "nan", "inf",
    "0x10", "\u0663", "\uff11", "1_000", "[" * 2_000, '{"a":' * 500, "x" * 10_000, "../..",
    "/dev/null/x", "s3:/", "s3://", "s3://b", "s3:///x", "s3://bucket", "s3://bucket/\x1b",
    "s3://bucket/../x", "http://", "http://[", "http://[::1", "http://a:99999", "http://a:x",
    "http://a b/", "not a url", "2026-13-01", "0000-00-00", "9999-12-31T23:59:59+23:59",
)  # fmt: skip


@cache
def command_of(path: str) -> Command:
    return loaded(path)


loaded = cli.command


def stop(*_: object, **__: object) -> None:
    raise Failure("stopped before anything was asked")


@pytest.fixture
def nothing_asked(monkeypatch, tmp_path):
    """Every command ends where it would turn to a network, or finds nobody there at once."""
    monkeypatch.chdir(tmp_path)
    # Hundreds of requests to nobody are tried again as always, but none waits before it is.
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))
    # Making one takes longer than everything else, and they keep no state.
    monkeypatch.setattr(cli, "command", command_of)
    for path in COMMANDS:
        command_of(path)
    monkeypatch.setattr("compactor_cli.store.make_client", stop)
    monkeypatch.setattr("compactor_cli.commands.maintain.GlueCatalog", stop)
    monkeypatch.setattr("compactor_cli.commands.runs.find_stack", stop)
    monkeypatch.setattr("compactor_cli.commands.demo.embedded_s3", stop)


def outcome(capsys, *words: str) -> tuple[int, str]:
    """Exit code and what a person is told; any other exception is a traceback."""
    code = main(words)
    return code, capsys.readouterr().err


def parameters_of(path: str) -> Iterator[click.Parameter]:
    """Every parameter of a command that takes a value; the settings of a run only for plan."""
    for parameter in command_of(path).params:
        is_flag = isinstance(parameter, click.Option) and parameter.is_flag
        if not is_flag and (path == "plan" or parameter.name not in FIELDS):
            yield parameter


@pytest.mark.parametrize("path", COMMANDS)
def test_every_value_of_every_option_ends_in_one_line(capsys, nothing_asked, path):
    tried = 0
    for parameter in parameters_of(path):
        for value in VALUES:
            if isinstance(parameter, click.Option):
                words = (*WORDS[path], f"{parameter.opts[-1]}={value}")
            else:
                words = (*WORDS[path][: -1 or None], value)
            code, err = outcome(capsys, *path.split(), *words)
            assert code in (1, 2), (words, err)
            assert 1 <= err.count("\n") <= 2, (words, err)
            assert err.startswith("compactor"), words
            assert all(line.isprintable() for line in err.splitlines()), words
            assert len(err) < 110_000
            tried += 1
    assert tried >= len(VALUES)


FIELD_VALUES = (
    "null", "true", "-1", "1e308", "1" + "0" * 400, '""', '"\\u0000"', '"\\ud800"', "[]", "[[]]",
    "{}", '["\\u0000"]', '{"a": {"b": []}}', '"' + "x" * 10_000 + '"', "[" * 40 + "]" * 40,
)  # fmt: skip


def test_every_value_of_every_field_of_a_document_ends_in_one_line(capsys, nothing_asked, tmp_path):
    places = {"s3_source_uri": PLACES[0], "s3_destination_uri": PLACES[1]}
    path = tmp_path / "input.json"
    for name in (*FIELDS, "no_such_field", ""):
        for value in FIELD_VALUES:
            rest = {one: text for one, text in places.items() if one != name}
            path.write_text(json.dumps(rest)[:-1] + f", {json.dumps(name)}: {value}}}")
            code, err = outcome(capsys, "run", "--input", str(path))
            assert code in (1, 2), (name, value, err)
            assert err.count("\n") == 1, (name, value, err)


@pytest.mark.parametrize(
    "document",
    [
        b"", b"[]", b"{", b'"text"', b"\xff\xfe", b"\xef\xbb\xbf{}", b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a":' * 900 + b"1" + b"}" * 900, b'{"a":' * 60 + b"1" + b"}" * 60, b'{"depth": NaN}',
        b'{"depth": Infinity}', b'{"depth": 1e999}', b'{"depth": ' + b"9" * 5_000 + b"}",
        b"\0", b"{}{}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["run", "runs start"])
def test_a_document_that_is_no_input_is_reported_in_one_line(
    capsys, nothing_asked, tmp_path, command, document
):
    path = tmp_path / "input.json"
    path.write_bytes(document)
    # What other tests left unclosed would be reported on standard error while this recurses.
    gc.collect()
    code, err = outcome(capsys, *command.split(), "--input", str(path))
    assert code == 2
    assert err.startswith("compactor: InvalidInput: --input: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "runs start"])
@pytest.mark.parametrize("path", [".", "none.json", "/dev/null/x", "x" * 300])
def test_an_input_that_is_no_file_is_reported_in_one_line(capsys, nothing_asked, command, path):
    code, err = outcome(capsys, *command.split(), "--input", path)
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize("command", ["run", "runs start"])
@pytest.mark.parametrize(
    "document",
    [
        '{"delete_after": null, "s3_source_uri": "s3://aaa/", "delete_after": "30d"}',
        '{"parquet_schema": {"deep": [{"delete_after": 1, "delete_after": 2}]}}',
        '{"delete_after": 1, "delete\\u005fafter": 2}',
    ],
)
def test_a_key_that_stands_twice_in_a_document_is_refused_at_every_level(
    capsys, nothing_asked, tmp_path, command, document
):
    path = tmp_path / "input.json"
    path.write_text(document)
    code, err = outcome(capsys, *command.split(), "--input", str(path))
    assert code == 2
    assert "'delete_after' appears twice" in err


def test_a_document_is_read_as_it_is():
    text = '{"a": [1, -2.5, 1e3, true, null, {"b": {}}], "": "x"}'
    assert read_object(text) == json.loads(text)


def test_arguments_that_are_no_text_are_refused_before_anything_else(capsys):
    for word in ("a\0b", "\udcff"):
        assert main(["restore", PLACES[1], word]) == 2
        err = capsys.readouterr().err
        assert err.startswith("compactor: InvalidInput: argument: ")
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    "url",
    ["not a url", "", "localhost:9000", "http://", "ftp://host/", "http://a b/", "http://host:99999",
     "http://[::1", "http://host/?x=1", "http://\x1b/"],
)  # fmt: skip
def test_an_endpoint_that_is_no_url_of_a_server_is_the_callers_mistake(capsys, url):
    code, err = outcome(capsys, "plan", *PLACES, "--endpoint-url", url)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("compactor: InvalidInput: --endpoint-url: ")


def test_an_endpoint_of_the_environment_that_is_no_url_is_reported_too(capsys, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "not a url")
    code, err = outcome(capsys, "plan", *PLACES)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("compactor: InvalidInput: endpoint: ")


def test_an_error_does_not_print_a_whole_document(capsys, nothing_asked, tmp_path):
    path = tmp_path / "input.json"
    path.write_text(json.dumps({"s3_source_uri": "x" * 10**6}))
    code, err = outcome(capsys, "run", "--input", str(path))
    assert (code, err.count("\n")) == (2, 1)
    assert len(err) < 5_000


# Streams that are closed, as a shell closes them


def shell(line: str, tmp_path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": ""}
    command = f"{sys.executable} -m compactor_cli"
    return subprocess.run(
        ["/bin/bash", "-c", line.replace("compactor", command)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code", "errors"),
    [
        ("compactor --version >&-", 1, ["compactor: standard output is closed"]),
        ("compactor --version >/dev/full", 1, ["compactor: standard output: [Errno 28]"]),
        ("compactor --help >/dev/full", 1, ["compactor: standard output: [Errno 28]"]),
        ("compactor --version <&-", 0, []),
        ("compactor --version 2>&-", 0, []),
        ("compactor plan nonsense out 2>&-", 2, []),
        ("compactor run --input - <&-", 2, ["compactor: InvalidInput: --input: '-'"]),
        # The reader is gone before the first line.
        ("(sleep 1; exec compactor --help) | head -0; exit ${PIPESTATUS[0]}", 1, []),
    ],
)
def test_a_closed_stream_is_one_line_at_most(tmp_path, line, code, errors):
    done = shell(line, tmp_path)
    assert done.returncode == code, done
    found = done.stderr.splitlines()
    assert len(found) == len(errors), done.stderr
    assert all(one.startswith(start) for one, start in zip(found, errors, strict=True))
