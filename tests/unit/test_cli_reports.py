"""``compactor runs`` by a state prefix, and the pages that it leaves; S3 is moto's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compactor.partition.receipts import Counts
from compactor_cli import commands as cli
from tests.support.deployed import LAKE, Deployed, deployed
from tests.support.desk import Desk, Page

STATE = f"s3://{LAKE}/_compactor/compacted/"


@pytest.fixture
def stack() -> Iterator[Deployed]:
    with deployed({"Type": "Succeed"}) as made:
        yield made


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(list(words))
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the browser of this machine was asked for."""
    asked: list[str] = []

    def show(url: str) -> bool:
        asked.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", show)
    return asked


def leave(stack: Deployed, run_id: str, **counts: Any) -> dict[str, Any]:
    """The report of a run of no deployment."""
    desk = Desk("a/")
    desk.receipt("a/", counts=Counts(**counts))
    document = {**msgspec.to_builtins(desk.report()), "run_id": run_id, "version": 1}
    key = f"_compactor/compacted/runs/{run_id}/report.json"
    stack.s3.put_object(Bucket=LAKE, Key=key, Body=json.dumps(document))
    return document


def text_of(file: Path) -> str:
    return Page(file.read_text("utf-8")).text


# report


def test_a_report_is_found_by_its_state_prefix_without_a_stack(stack, command):
    leave(stack, "by-hand", objects_in=7, objects_out=1)
    for words in (("by-hand",), ()):
        code, out, err = command("runs", "show", *words, "--state-uri", STATE)
        assert (code, err) == (0, "")
        assert "Run by-hand: succeeded" in out


def test_a_run_without_a_report_below_the_prefix_is_reported_in_one_line(stack, command):
    code, out, err = command("runs", "show", "nothing", "--state-uri", STATE)
    assert (code, out) == (1, "")
    assert err == f"compactor: there is no report of run nothing below {STATE}\n"
    code, out, err = command("runs", "show", "--state-uri", STATE)
    assert (code, out) == (1, "")
    assert err == f"compactor: there is no report below {STATE}\n"


def test_runs_of_a_state_prefix_are_listed_by_their_reports(stack, command):
    leave(stack, "by-hand", objects_in=7, objects_out=1)
    code, out, _ = command("runs", "list", "--state-uri", STATE, "--json")
    (run,) = json.loads(out)
    assert (code, run["run_id"], run["status"]) == (0, "by-hand", "succeeded")
    assert (run["partitions"], run["objects_before"], run["objects_after"]) == (1, 7, 1)
    assert command("runs", "list", "--state-uri", STATE)[1].startswith("1 run\n")


def test_a_name_of_no_run_is_refused(stack, command):
    code, _, err = command("runs", "show", "../x", "--state-uri", STATE)
    assert code == 2
    assert "RUN: '../x' is not accepted; expected the id of a run" in err


def test_an_endpoint_stands_beside_a_state_prefix_alone(stack, command):
    code, _, err = command("runs", "show", "--endpoint-url", "http://127.0.0.1:1")
    assert code == 2
    assert "--endpoint-url" in err
    assert "DEST or --state-uri" in err


def test_open_shows_the_page_and_html_says_where_it_is_kept(stack, command, opened, tmp_path):
    leave(stack, "r1", objects_in=7, objects_out=1, records=70)
    page = tmp_path / "page.html"
    assert command("runs", "show", "--state-uri", STATE, "--open", "--html", str(page))[0] == 0
    assert opened == [page.as_uri()]
    assert "7 objects became 1; queries open 7 times fewer objects" in text_of(page)


def test_open_alone_keeps_the_page_among_the_temporary_files(
    stack, command, opened, monkeypatch, tmp_path
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    leave(stack, "r1", objects_in=7, objects_out=1)
    assert command("runs", "show", "--state-uri", STATE, "--open")[0] == 0
    (page,) = tmp_path.rglob("report.html")
    assert opened == [page.as_uri()]


def test_without_a_browser_the_file_is_named(stack, command, monkeypatch, tmp_path):
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    leave(stack, "r1", objects_in=7, objects_out=1)
    page = tmp_path / "page.html"
    code, _, err = command("runs", "show", "--state-uri", STATE, "--open", "--html", str(page))
    assert (code, err) == (0, f"compactor: found no browser; the page is {page}\n")


def test_a_page_that_cannot_be_written_is_one_clear_error(stack, command, tmp_path):
    leave(stack, "r1")
    wrong = tmp_path / "nowhere" / "page.html"
    code, out, err = command("runs", "show", "--state-uri", STATE, "--html", str(wrong))
    assert (code, out) == (2, "")
    assert f"--html: '{wrong}' is not accepted; expected a writable file" in err
