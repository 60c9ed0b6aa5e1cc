"""The report's page shows what happened, and nothing from outside becomes a part of it."""

from __future__ import annotations

import msgspec
import pytest

from compactor.log.state import QuarantineLine
from compactor.model import Skipped
from compactor.report.html import render
from compactor.runs.receipts import Counts
from compactor.sizes import human_bytes
from tests.support.desk import HOSTILE, Desk, Page


def hostile_page() -> Page:
    uris = {
        "s3_source_uri": f"s3://source/{HOSTILE}",
        "s3_destination_uri": f"s3://lake/{HOSTILE}x",
    }
    desk = Desk(HOSTILE + "/", "", oversized=(HOSTILE,), spark_engine="none", **uris)
    desk.receipt("")
    desk.receipt(
        HOSTILE + "/",
        "failed",
        error=HOSTILE,
        cause=HOSTILE,
        counts=Counts(requests={HOSTILE: 1}),
        skipped={HOSTILE: Skipped(1, 1, (HOSTILE,))},
        quarantined=[QuarantineLine(HOSTILE, HOSTILE, HOSTILE)],
    )
    found = desk.report(HOSTILE)
    assert found.totals.requests == {HOSTILE: 1}
    document = msgspec.to_builtins(found)
    return Page(render({**document, "run_id": HOSTILE, "started_at": HOSTILE, "status": HOSTILE}))


def test_nothing_from_outside_becomes_part_of_the_pages_markup() -> None:
    page = hostile_page()
    ours = {"html", "meta", "title", "style", "h1", "span", "p", "h2", "ul", "li"}
    assert set(page.tags) <= ours | {"table", "tr", "th", "td"}
    assert {name for name, _ in page.attributes} <= {"lang", "charset", "class"}


def test_hostile_names_are_shown_as_they_are() -> None:
    desk = Desk(HOSTILE + "/", oversized=(HOSTILE,), spark_engine="none")
    desk.receipt(
        HOSTILE + "/", quarantined=[QuarantineLine(f"key {HOSTILE}", "truncated", "cut")],
        skipped={"empty": Skipped(1, 1, (f"example {HOSTILE}",))},
    )  # fmt: skip
    desk.report()
    texts = Page(desk.stored("report.html")).texts
    for text in (HOSTILE + "/", HOSTILE, f"key {HOSTILE}", f"example {HOSTILE}"):
        assert text in texts


def test_the_page_shows_totals_failures_and_partitions() -> None:
    desk = Desk("a/", "")
    desk.receipt("a/", counts=Counts(objects_in=12_000, bytes_in=1536, objects_out=1, records=7))
    desk.receipt("", "failed", error="IntegrityError", cause="a gap")
    desk.report()
    texts = Page(desk.stored("report.html")).texts
    for text in ("12,000", "1.5 KiB", "(root)", "(root): IntegrityError a gap", "failed", "7"):
        assert text in texts


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1536, "1.5 KiB"),
        (5 * 1024**2, "5.0 MiB"),
        (3.25 * 1024**3, "3.2 GiB"),
        (2048 * 1024**4, "2,048.0 TiB"),
    ],
)
def test_bytes_are_shown_with_a_binary_unit(count: float, text: str) -> None:
    assert human_bytes(count) == text


def test_what_the_store_does_not_promise_stands_on_the_page_and_in_the_document() -> None:
    desk = Desk("a/")
    desk.receipt("a/")
    line = f"this store ignores {HOSTILE}"
    document = {"unpartitioned": {"objects": 0, "bytes": 0}, "warnings": [line]}
    desk.write("discovery.json", msgspec.json.encode(document))
    found = desk.report()
    assert found.warnings == [line]
    assert line in Page(desk.stored("report.html")).texts
    assert found.status == "succeeded"
