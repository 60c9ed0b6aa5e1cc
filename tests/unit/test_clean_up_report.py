"""Clean-up's part of a report: every due partition is accounted for, every kept source named."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from compactor.cleaning import clean_up_receipts
from compactor.cleaning import clean_up_report as clean_up_reports
from compactor.cleaning.clean_up_list import DueWork, write_due
from compactor.cleaning.clean_up_receipts import SHOWN_REFUSALS, CleanUpReceipt
from compactor.partition.receipts import Counts
from compactor.report.page import render
from compactor.report.report import RunReport
from compactor_cli.summary import print_summary
from compactor_handlers import report as handler
from tests.support.desk import HOSTILE, RUN, Desk, Page

CONTEXT: Any = SimpleNamespace(
    get_remaining_time_in_millis=lambda: 900_000,
    function_name="report",
    memory_limit_in_mb=1_024,
    invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:report",
    aws_request_id="1",
)
DENIED = {"key": "logs/a/1.json", "reason": "AccessDenied"}


class CleanUpDesk(Desk):
    """A run that cleaned up, or was to."""

    def __init__(self, *due: str, paths: tuple[str, ...] = (), **given: Any) -> None:
        super().__init__(*paths, delete_after="30d", **given)
        write_due([DueWork(path, 2) for path in due], self.settings, RUN.run_id, self.store)

    def cleaned(self, path: str, status: str = "done", **given: Any) -> None:
        """The receipt of a clean-up, as its worker leaves it."""
        document = {"path": path, "run_id": RUN.run_id, "status": status, **given}
        receipt = msgspec.convert(document, CleanUpReceipt)
        partition = self.settings.partition_at(path)
        clean_up_receipts.write(receipt, self.settings, partition, self.store)


def test_a_run_that_keeps_its_sources_has_no_such_part() -> None:
    desk = Desk("a/")
    desk.receipt("a/")
    found = desk.report()
    assert (found.status, found.clean_up) == ("succeeded", None)
    assert json.loads(desk.stored("report.json"))["clean_up"] is None
    assert "clean-up" not in desk.page.text


def test_what_was_cleaned_up_is_summed_over_its_partitions() -> None:
    desk = CleanUpDesk("a/", "b/")
    some = {"commits": 2, "deleted": 300, "deleted_bytes": 4096, "requests": {"HEAD": 2}}
    desk.cleaned("a/", counts=some)
    more = {
        "commits": 1,
        "deleted": 5,
        "deleted_bytes": 10,
        "uploads_aborted": 1,
        "markers": 5,
        "changed": 1,
    }
    desk.cleaned("b/", counts={**more, "requests": {"HEAD": 1, "DELETE": 1}})
    found = desk.report()
    assert (found.status, found.cause) == ("succeeded", "")
    clean_up = found.clean_up
    assert clean_up is not None
    assert clean_up.totals == {
        "partitions": 2,
        "commits": 3,
        "deleted": 305,
        "deleted_bytes": 4106,
        "changed": 1,
        "refused": 0,
        "markers": 5,
        "uploads_aborted": 1,
        "unsafe": 0,
        "warnings": 0,
        "failures": 0,
    }
    assert clean_up.requests == {"HEAD": 3, "DELETE": 1}


def test_the_totals_of_compaction_do_not_count_what_clean_up_did() -> None:
    desk = CleanUpDesk("a/", paths=("a/",))
    desk.receipt("a/", counts=Counts(objects_in=3, requests={"GET": 3}))
    desk.cleaned("a/", counts={"deleted": 7, "requests": {"GET": 100}})
    assert desk.report().totals == Counts(objects_in=3, requests={"GET": 3})


def test_a_run_with_nothing_due_has_a_part_that_says_so() -> None:
    desk = CleanUpDesk()
    found = desk.report()
    assert found.status == "succeeded"
    assert found.clean_up is not None
    assert set(found.clean_up.totals.values()) == {0}


def test_one_unsafe_commit_fails_the_run_with_its_line_and_hides_no_other() -> None:
    desk = CleanUpDesk("a/", "b/")
    line = "s3://lake/compacted/a/x.json is missing; its sources stay"
    desk.cleaned("a/", counts={"deleted": 1}, unsafe=[line])
    desk.cleaned("b/", counts={"deleted": 2})
    found = desk.report()
    assert (found.status, found.cause) == ("failed", f"clean-up: {line}")
    assert found.clean_up is not None
    assert (found.clean_up.deleted, found.clean_up.failures) == (3, [])


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (None, "a/: WorkerLost no receipt: the worker was lost before it could write one"),
        ("more", "a/: WorkerLost the last receipt says that commits were left"),
        ("failed", "a/: IntegrityError the log has a gap"),
    ],
)
def test_a_clean_up_that_was_lost_or_failed_fails_the_run(status: str | None, line: str) -> None:
    desk = CleanUpDesk("a/", "")
    if status is not None:
        given = {"error": "IntegrityError", "cause": "the log has a gap"}
        desk.cleaned("a/", status, counts={"deleted": 4}, **(given if status == "failed" else {}))
    desk.cleaned("", counts={"deleted": 1})
    found = desk.report()
    assert (found.status, found.cause) == ("failed", f"clean-up: {line}")
    assert found.clean_up is not None
    assert found.clean_up.deleted == (1 if status is None else 5)


def test_the_root_partition_has_a_name_in_failures() -> None:
    found = CleanUpDesk("").report()
    assert found.cause.startswith("clean-up: (root): WorkerLost")


def test_refused_deletes_are_reported_but_do_not_fail_the_run() -> None:
    desk = CleanUpDesk("a/")
    desk.cleaned("a/", counts={"refused": 1}, refusals=[DENIED], warnings=["a/: look here"])
    found = desk.report()
    assert (found.status, found.cause) == ("succeeded", "")
    assert found.clean_up is not None
    assert found.clean_up.refused == 1
    assert msgspec.to_builtins(found.clean_up)["refusals"] == [DENIED]
    assert "clean-up: logs/a/1.json was not deleted: AccessDenied" in desk.page.text


def test_only_the_first_refusals_are_kept_and_all_are_counted() -> None:
    desk = CleanUpDesk(*(f"{n}/" for n in range(3)))
    for n in range(3):
        desk.cleaned(f"{n}/", counts={"refused": 60}, refusals=[DENIED] * 60)
    clean_up = desk.report().clean_up
    assert clean_up is not None
    assert (len(clean_up.refusals), clean_up.refused) == (SHOWN_REFUSALS, 180)


def test_what_ended_clean_up_as_a_whole_is_reported_once_and_what_was_done_still_counts() -> None:
    desk = CleanUpDesk("a/", "b/", "c/")
    desk.cleaned("a/", counts={"deleted": 9})
    found = desk.report(clean_up_failure="States.ItemReaderFailed: gone")
    assert (found.status, found.cause) == ("failed", "clean-up: States.ItemReaderFailed: gone")
    assert found.clean_up is not None
    assert found.clean_up.deleted == 9


def test_a_plan_that_failed_is_reported_though_there_is_no_list() -> None:
    desk = Desk(delete_after="30d")
    found = desk.report(clean_up_failure="IntegrityError: a damaged log")
    assert (found.status, found.cause) == ("failed", "clean-up: IntegrityError: a damaged log")


def test_a_clean_up_that_never_began_is_no_success() -> None:
    found = Desk(delete_after="30d").report("States.Runtime: something")
    assert found.cause == "States.Runtime: something; clean-up: it did not begin"


def test_failures_of_partitions_come_before_those_of_clean_up() -> None:
    found = CleanUpDesk("old/", paths=("a/",)).report()
    assert found.cause.startswith("a/: WorkerLost")
    assert "; clean-up: old/: WorkerLost" in found.cause


def test_the_page_shows_what_was_deleted_and_what_failed() -> None:
    desk = CleanUpDesk("a/", "b/")
    counts = {"commits": 4, "deleted": 12_345, "deleted_bytes": 1536, "requests": {"HEAD": 4}}
    desk.cleaned("a/", counts=counts, unsafe=["an output is missing"])
    desk.report()
    text = desk.page.text
    assert "clean-up: 12,345 sources of 4 commits deleted, 1.5 KiB" in text
    assert "What failed" in text
    assert "clean-up an output is missing" in text
    assert "clean-up b/: WorkerLost" in text


def test_lines_of_very_many_partitions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_up_reports, "_SHOWN_LINES", 2)
    desk = CleanUpDesk(*(f"{n}/" for n in range(5)))
    for n in range(4):
        desk.cleaned(f"{n}/", unsafe=["an output is missing"], warnings=["versioned"])
    found = desk.report()
    clean_up = found.clean_up
    assert clean_up is not None
    assert (len(clean_up.unsafe), len(clean_up.warnings), len(clean_up.failures)) == (2, 2, 1)
    assert clean_up.left_out == {"unsafe": 2, "warnings": 2}
    told = {name: clean_up.totals[name] for name in ("unsafe", "warnings", "failures")}
    assert told == {"unsafe": 4, "warnings": 4, "failures": 1}
    # One lost, four outputs; three are told.
    assert found.cause.endswith("; and 2 more")
    assert "clean-up 2 more unsafe" in desk.page.text


def test_nothing_of_clean_up_becomes_part_of_the_pages_markup() -> None:
    desk = CleanUpDesk(HOSTILE)
    refusal = {"key": HOSTILE, "reason": HOSTILE}
    texts = {"unsafe": [HOSTILE], "warnings": [HOSTILE], "error": HOSTILE, "cause": HOSTILE}
    counts = {"requests": {HOSTILE: 1}}
    desk.cleaned(HOSTILE, "failed", counts=counts, refusals=[refusal], **texts)
    page = Page(render(msgspec.to_builtins(desk.report(HOSTILE))))
    assert not {"script", "img"} & set(page.tags)
    assert not {"src", "onerror"} & {name for name, _ in page.attributes}
    assert page.text.count(HOSTILE) >= 6


def test_the_handlers_answer_has_clean_ups_numbers_and_takes_its_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = CleanUpDesk("a/")
    desk.cleaned("a/", counts={"deleted": 3})
    monkeypatch.setattr(handler, "store_for", lambda *_: desk.store)
    event = {
        "run_id": RUN.run_id,
        "started_at": RUN.started_at,
        "settings": desk.settings.to_dict(),
        "clean_up_failure": None,
    }
    answer = handler.handler(event, CONTEXT)
    assert (answer["status"], answer["clean_up"]["deleted"]) == ("succeeded", 3)
    failed = handler.handler({**event, "clean_up_failure": {"Error": "E", "Cause": "c"}}, CONTEXT)
    assert (failed["status"], failed["cause"]) == ("failed", "clean-up: E: c")
    kept = {**desk.settings.to_dict(), "delete_after": None}
    assert handler.handler({**event, "settings": kept}, CONTEXT)["clean_up"] is None


def shown(found: RunReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the summary that are about clean-up."""
    print_summary(msgspec.to_builtins(found), 1.0)
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if line.startswith("clean-up")]


def test_the_summary_shows_what_was_deleted_refused_and_aborted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk = CleanUpDesk("a/")
    counts = {"commits": 1, "deleted": 1_200, "deleted_bytes": 2048, "refused": 1}
    warnings = [f"warning {n}" for n in range(7)]
    desk.cleaned("a/", counts={**counts, "uploads_aborted": 2}, warnings=warnings)
    assert shown(desk.report(), capsys) == [
        "clean-up: 1,200 sources of 1 commit deleted, 2.0 KiB",
        "clean-up: 1 source not deleted by S3",
        "clean-up: 2 unfinished uploads aborted",
        *(f"clean-up: warning {n}" for n in range(7)),
    ]


def test_the_summary_of_a_run_that_kept_its_sources_says_nothing_of_clean_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert shown(Desk().report(), capsys) == []
