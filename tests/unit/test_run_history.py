"""The report shows how long runs took, and names the run before."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from compactor.clock import instant
from compactor.report.page import render
from compactor.report.report import RunIdentity, RunReport, report
from tests.support.desk import HOSTILE, RUN, Desk, Page

DAY = 86_400.0


def run_on(day: int, desk: Desk, *, seconds: float = 60.0, failure: str = "") -> RunReport:
    """The run of one day, which took this long."""
    identity = RunIdentity(f"run-{day}", instant(day * DAY), failure, ended_at=day * DAY + seconds)
    return report(identity, desk.settings, desk.store)


def page_of(desk: Desk, run_id: str) -> Page:
    body = desk.store.get(*desk.settings.layout.run(run_id, "report.json"))
    return Page(render(msgspec.json.decode(body)))


def test_a_report_has_its_wall_time_and_the_runs_before_it() -> None:
    desk = Desk()
    assert run_on(1, desk, failure="lost").previous == []
    assert "Wall time 1 min 0 s" in page_of(desk, "run-1").text
    assert "Duration of" not in page_of(desk, "run-1").text
    found = run_on(2, desk, seconds=90.0)
    assert [(one.run_id, one.wall_seconds, one.status) for one in found.previous] == [
        ("run-1", 60.0, "failed")
    ]
    page = page_of(desk, "run-2")
    assert "Duration of the last 2 runs 1 min 30 s 0 " in page.text
    assert "1970-01-03 00:00:00 UTC: 1 min 30 s, 0 objects, succeeded" in page.text
    assert "runs from 1970-01-02 00:00:00 UTC to 1970-01-03 00:00:00 UTC" in page.text
    assert [
        value for name, value in page.attributes if name == "class" and value in {"f", "t"}
    ] == [
        "f",
        "t",
    ]


def test_a_run_that_is_reported_again_is_in_the_history_once() -> None:
    desk = Desk()
    run_on(1, desk)
    first, again = run_on(2, desk), run_on(2, desk)
    assert first == again
    assert [one.run_id for one in run_on(3, desk).previous] == ["run-1", "run-2"]


def test_the_history_keeps_the_last_thirty_runs() -> None:
    desk = Desk()
    found = [run_on(day, desk) for day in range(1, 41)][-1]
    assert [one.run_id for one in found.previous] == [f"run-{day}" for day in range(11, 40)]


@pytest.mark.parametrize("body", [b"{", b'{"version": 99}', b'{"version": 1, "runs": [1]}'])
def test_a_history_that_cannot_be_read_fails_no_run(body: bytes) -> None:
    desk = Desk()
    run_on(1, desk)
    desk.store.put(*desk.settings.layout.run_history, body)
    assert (run_on(2, desk).status, run_on(2, desk).previous) == ("succeeded", [])
    assert [one.run_id for one in run_on(3, desk).previous] == ["run-2"]


@pytest.mark.parametrize("started_at", ["", HOSTILE])
def test_without_times_there_is_no_wall_time(started_at: str) -> None:
    desk = Desk()
    known = replace(RUN, started_at=started_at, ended_at=1.0)
    assert report(known, desk.settings, desk.store).wall_seconds == 0.0
    assert report(RUN, desk.settings, desk.store).wall_seconds == 0.0
    assert "Wall time" not in page_of(desk, RUN.run_id).text
