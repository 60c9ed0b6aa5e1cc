"""Reports of very many partitions, in as many calls as they take."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from compactor.cleaning import clean_up_receipts
from compactor.cleaning.clean_up_list import DueWork
from compactor.cleaning.clean_up_receipts import CleanUpCounts, CleanUpReceipt
from compactor.errors import IntegrityError
from compactor.log.counts import LeftAlone
from compactor.model import Skipped
from compactor.partition.receipts import Counts
from compactor.report import receipt_totals as gathered
from compactor.report.report import RunReport
from compactor.report.report_progress import SO_FAR_NAME
from tests.support.desk import RUN, Desk
from tests.support.examples import Looks

PATHS = tuple(f"{number:02}/" for number in range(40))


def a_desk(**given: Any) -> Desk:
    desk = Desk(*PATHS, **given)
    for number, path in enumerate(PATHS):
        counts = Counts(objects_in=1, bytes_in=number * 7 % 11, seconds=0.5, requests={"GET": 1})
        status = "failed" if number % 13 == 5 else "done"
        if number != 20:
            desk.receipt(
                path,
                status,
                counts=counts,
                skipped={"too_young": Skipped(1, 2, (path,))},
                left_alone={"x": LeftAlone(1, 2, path)},
            )
    return desk


def with_clean_ups(desk: Desk) -> Desk:
    due = [DueWork(path, 1).to_dict() for path in PATHS]
    desk.write("clean-up.json", json.dumps(due).encode())
    for number, path in enumerate(PATHS[:-1]):
        receipt = CleanUpReceipt(
            path, RUN.run_id, "done", counts=CleanUpCounts(deleted=2), warnings=[f"{number}"]
        )
        partition = desk.settings.partition_at(path)
        clean_up_receipts.write(receipt, desk.settings, partition, desk.store)
    return desk


def in_calls(desk: Desk, looks: int) -> tuple[RunReport, int]:
    """The report, and how many calls it took."""
    calls, found = 1, desk.report_on(Looks(looks))
    while found is None:
        calls, found = calls + 1, desk.report_on(Looks(looks), goes_on=True)
    return found, calls


@pytest.mark.parametrize("looks", [1, 7, 39])
@pytest.mark.parametrize("shown", [gathered.SHOWN_PARTITIONS, 6])
def test_a_report_in_several_calls_is_that_of_one(
    looks: int, shown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered, "SHOWN_PARTITIONS", shown)
    desk = with_clean_ups(a_desk(delete_after="30d"))
    whole = desk.report()
    assert (whole.partition_count, whole.failed_count) == (40, 4)
    assert whole.clean_up is not None
    assert (whole.clean_up.deleted, len(whole.clean_up.failures)) == (78, 1)
    stored = desk.stored("report.json")
    found, calls = in_calls(desk, looks)
    assert calls > 80 / (looks + 1)
    assert desk.stored("report.json") == stored
    assert msgspec.to_builtins(found) == msgspec.to_builtins(whole)


def test_a_call_goes_on_after_what_was_read_and_reads_no_receipt_twice_but_those_ahead() -> None:
    desk = a_desk()
    assert desk.report_on(Looks(30)) is None
    desk.store.calls.clear()
    assert desk.report_on(Looks(100), goes_on=True) is not None
    read = [call for call in desk.store.calls if "/receipts/" in str(call)]
    assert 0 < len(read) <= 10


def test_a_report_that_restarts_takes_nothing_of_one_that_was_left() -> None:
    desk = a_desk()
    assert desk.report_on(Looks(10)) is None
    for path in PATHS:
        desk.receipt(path, counts=Counts(objects_in=3))
    assert desk.report().totals.objects_in == 120


def test_what_was_gathered_and_is_damaged_ends_the_report() -> None:
    desk = a_desk()
    desk.write(SO_FAR_NAME, b"{")
    with pytest.raises(IntegrityError, match=SO_FAR_NAME):
        desk.report_on(Looks(10), goes_on=True)


def test_without_what_was_gathered_the_report_restarts() -> None:
    found = a_desk().report_on(Looks(100), goes_on=True)
    assert found is not None
    assert found.partition_count == 40
