"""The report's page shows what happened, and nothing from outside becomes a part of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from compactor.log.counts import LeftAlone, SizeCounts
from compactor.log.state import QuarantineLine
from compactor.model import QuarantineReason, Skipped, SkipReason
from compactor.partition.receipts import Counts
from compactor.report.page import OPEN_ROWS, render, verdict, verify_command
from compactor.report.reasons import OVERSIZED, REASONS, nothing_to_do
from compactor.sizes import human_bytes, human_seconds
from tests.support.desk import HOSTILE, Desk, Page

LINE = {"wall_seconds": 1.0, "status": "failed", "objects": 1}


def page_with(text: str) -> Page:
    """A page with this text wherever something from outside may stand."""
    uris = {"s3_source_uri": f"s3://source/{text}", "s3_destination_uri": f"s3://lake/{text}x"}
    desk = Desk(text + "/", "", oversized=(text,), spark_engine="none", **uris)
    desk.receipt("")
    desk.receipt(
        text + "/",
        "failed",
        error=text,
        cause=text,
        counts=Counts(objects_in=2, objects_out=1, requests={text: 1}),
        skipped={text: Skipped(1, 1, (text,))},
        quarantined=[QuarantineLine(text, text, text)],
        left_alone={text: LeftAlone(1, 1, text, text)},
        sizes=SizeCounts([0, 2], [0, 0, 1]),
    )
    found = desk.report(text)
    assert found.totals.requests == {text: 1}
    document = msgspec.to_builtins(found)
    told = {"run_id": text, "started_at": text, "status": text, "headline": text}
    previous = [{"run_id": text, "started_at": text, **LINE}]
    return Page(render({**document, **told, "previous": previous, "warnings": [text]}))


@pytest.mark.parametrize("text", [HOSTILE, '"><script>', "' onload='x", "{{ 1 }}{% raw %}"])
def test_nothing_from_outside_becomes_part_of_the_pages_markup(text: str) -> None:
    hostile, harmless = page_with(text), page_with("harmless")
    assert hostile.tags == harmless.tags
    assert [name for name, _ in hostile.attributes] == [name for name, _ in harmless.attributes]


def test_the_page_has_no_script_and_asks_for_nothing() -> None:
    page = page_with("harmless")
    assert not {"script", "iframe", "img", "object", "form"} & set(page.tags)
    links = [value for name, value in page.attributes if name in {"src", "href", "action"}]
    assert links == ["data:,"]
    policies = [value for name, value in page.attributes if value and "default-src" in value]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_hostile_names_are_shown_as_they_are() -> None:
    desk = Desk(HOSTILE + "/", oversized=(HOSTILE,), spark_engine="none")
    desk.receipt(
        HOSTILE + "/",
        left_alone={"truncated": LeftAlone(1, 1, f"key {HOSTILE}", "cut")},
        skipped={"empty": Skipped(1, 1, (f"example {HOSTILE}",))},
    )
    desk.report()
    texts = desk.page.text
    for text in (HOSTILE, f"key {HOSTILE}", f"example {HOSTILE}"):
        assert text in texts


def test_the_page_shows_totals_and_failures() -> None:
    desk = Desk("a/", "")
    desk.receipt("a/", counts=Counts(objects_in=12_000, bytes_in=1536, objects_out=1, records=7))
    desk.receipt("", "failed", error="IntegrityError", cause="a gap")
    desk.report()
    texts = desk.page.text
    for text in ("12,000", "1.5 KiB", "1 of 2 partitions failed", "(root) IntegrityError a gap"):
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
    document = {"version": 1, "warnings": [line]}
    desk.write("discovery.json", msgspec.json.encode(document))
    found = desk.report()
    assert found.warnings == [line]
    assert line in desk.page.text
    assert found.status == "succeeded"


# Words.


def test_the_verdict_of_a_run_that_left_objects_alone_speaks_of_all() -> None:
    totals = {"objects_in": 120, "objects_out": 4, "records": 2_760}
    report = {"totals": totals, "left_alone": {"binary": {"objects": 422}}, "headline": ""}
    assert verdict(report) == (
        "120 of 542 objects became 4; 422 were left alone; queries open 30 times fewer objects;"
        " every one of 2,760 records in them is in exactly one output."
    )


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (
            Counts(objects_in=2_000, objects_out=24, records=50_838),
            (
                "2,000 objects became 24; queries open 83 times fewer objects;"
                " every one of 50,838 records is in exactly one output."
            ),
        ),
        (
            Counts(objects_in=1, objects_out=1, records=1),
            "1 object became 1; 1 record is in exactly one output.",
        ),
        (Counts(objects_in=2, objects_out=2, copied=2), "2 objects became 2."),
        (Counts(), "Nothing to compact: no object below s3://"),
    ],
)
def test_the_page_begins_with_what_the_run_came_to(counts: Counts, sentence: str) -> None:
    desk = Desk("a/")
    desk.receipt("a/", counts=counts)
    desk.report()
    assert sentence in desk.page.text


def test_dead_letter_records_are_in_the_report_with_their_place() -> None:
    desk = Desk("a/")
    counts = Counts(objects_in=2, objects_out=1, records=5, dead_letters=3)
    place = "s3://lake/_compactor/partitions/a/dead-letters/"
    desk.receipt("a/", counts=counts, dead_letters=place)
    found = desk.report()
    assert (found.totals.dead_letters, found.dead_letters) == (3, [place])
    text = desk.page.text
    assert f"3 dead-letter records in no output: see {place}" in text
    assert "Dead-letter records 3" in text
    assert f"3 dead-letter records in no output: see {place}" in str(found)


def test_a_run_that_did_nothing_says_what_most_objects_were_left_for() -> None:
    desk = Desk("a/")
    skipped = {"too_young": Skipped(4_000, 1), "empty": Skipped(1_000, 0)}
    desk.receipt("a/", skipped=skipped)
    desk.report()
    text = desk.page.text
    assert "Nothing to compact: 4,000 objects left: younger than settle_seconds" in text
    assert "Waiting for a later run 4,000" in text
    assert "too_young 4,000 1 B younger than settle_seconds" in text


def test_the_page_says_what_the_run_cost() -> None:
    desk = Desk("a/")
    desk.receipt(
        "a/",
        counts=Counts(
            objects_in=2_000,
            objects_out=24,
            bytes_in=8_000_000,
            bytes_out=2_000_000,
            requests={"GET": 2_000, "LIST": 4, "PUT": 60},
        ),
    )
    desk.report()
    text = desk.page.text
    # 2,000 GETs at $0.0004 a thousand; a few more are the run's own.
    assert "Cost, about $0.0011" in text
    assert "What it cost By list prices How many Dollars GET 2,004 $0.00080" in text


def test_what_was_left_alone_stands_by_reason_with_what_to_do() -> None:
    desk = Desk("a/", oversized=("c/",), spark_engine="none")
    left = {"open_quote": LeftAlone(2, 2, "a/x", "a quote is open")}
    skipped = {"too_young": Skipped(4_000, 1), "already_committed": Skipped(7, 1)}
    desk.receipt("a/", skipped=skipped, left_alone=left)
    desk.report()
    text = desk.page.text
    rows = (
        "open_quote 2 2 B a quote is open complete them a/x",
        "oversized 1 partition larger than one worker may take",
        "too_young 4,000 1 B younger than settle_seconds (600) a later run takes them",
        "already_committed 7 1 B compacted already nothing",
    )
    places = [text.index(row) for row in rows]
    assert places == sorted(places)
    assert "set engine to worker" in text


def test_the_page_is_one_of_five_parts_in_order() -> None:
    desk = Desk("a/", "b/")
    counts = Counts(objects_in=2_000, objects_out=4, records=9, seconds=72, requests={"GET": 2_000})
    sizes = SizeCounts([0] * 10 + [1_500, 500], [0] * 20 + [4])
    desk.receipt("a/", counts=counts, sizes=sizes, skipped={"empty": Skipped(1, 0)})
    desk.receipt("b/", "failed", error="IntegrityError", cause="a gap")
    desk.report()
    text = desk.page.text
    heads = (
        "2,000 objects became 4",
        "Objects 2,000 → 4",
        "What failed, and what to do",
        "Left alone, and what to do",
        "Object sizes, before and after",
        "What it cost",
    )
    places = [text.index(head) for head in heads]
    assert places == sorted(places)
    assert "100% 0" in text


@pytest.mark.parametrize("reason", SkipReason)
def test_the_page_says_of_each_reason_to_leave_an_object_what_the_headline_says(
    reason: SkipReason,
) -> None:
    desk = Desk("a/", exclude=["tmp/*"])
    desk.receipt("a/", skipped={reason.value: Skipped(4_000, 1)})
    desk.report()
    headline = nothing_to_do(desk.settings, {reason.value: Skipped(4_000, 1)})
    told = headline.removeprefix("nothing to compact: 4,000 objects left: ")
    why, _, remedy = told.partition("; ")
    page = desk.page.text
    assert why
    assert f"{reason} 4,000 1 B {why} {remedy or 'nothing'}" in page


def test_a_reason_that_only_a_later_version_knows_is_shown_without_a_text() -> None:
    desk = Desk("a/")
    desk.receipt("a/", skipped={"too_young": Skipped(4_000, 1)})
    desk.report()
    later = msgspec.json.decode(desk.stored("report.json"))
    later["skipped"]["of_tomorrow"] = later["skipped"].pop("too_young")
    assert "of_tomorrow 4,000 1 B" in Page(render(later)).text


def test_settings_that_an_earlier_report_lacks_are_reported_at_their_defaults() -> None:
    desk = Desk("a/")
    desk.receipt("a/", skipped={"too_young": Skipped(4_000, 1)})
    desk.report()
    earlier = msgspec.json.decode(desk.stored("report.json"))
    del earlier["settings"]["settle_seconds"]
    assert "younger than settle_seconds (600)" in Page(render(earlier)).text


def test_the_page_of_a_run_that_did_nothing_has_no_figures_that_are_all_zeros() -> None:
    desk = Desk("a/")
    desk.receipt("a/", skipped={"already_committed": Skipped(4_000, 1)})
    desk.report()
    text = desk.page.text
    assert "0 → 0" not in text
    assert "Partitions 1" in text


def test_a_run_that_did_nothing_shows_python_its_headline_and_no_zeros() -> None:
    desk = Desk("a/")
    desk.receipt("a/", skipped={"already_committed": Skipped(4_000, 1)})
    text = str(desk.report())
    assert "nothing to compact: 4,000 objects left: compacted already" in text
    assert "Partitions" in text
    assert "Compaction ratio" not in text


def test_every_reason_has_its_line_in_the_table() -> None:
    assert {*SkipReason} | {*QuarantineReason} <= REASONS.keys()
    assert all(REASONS[reason].sentence for reason in REASONS)
    assert all(REASONS[reason].remedy for reason in QuarantineReason)


def test_what_to_do_about_an_error_is_what_the_runbook_knows(repo_root: Path) -> None:
    runbook = (repo_root / "docs" / "operations.md").read_text("utf-8")
    errors = [name for name in REASONS if name not in {*SkipReason, *QuarantineReason, OVERSIZED}]
    assert len(errors) > 8
    assert [error for error in errors if f"`{error}`" not in runbook] == []


@pytest.mark.parametrize("error", ["IntegrityError", "WorkerLost", "NothingReadable"])
def test_each_failure_stands_with_what_to_do(error: str) -> None:
    desk = Desk("a/")
    desk.receipt("a/", "failed", error=error, cause="the cause")
    desk.report()
    reason = REASONS[error]
    assert f"a/ {error} the cause {reason.sentence}; {reason.remedy}" in desk.page.text


def test_the_long_tail_of_failures_is_folded() -> None:
    paths = [f"{n:03}/" for n in range(OPEN_ROWS + 3)]
    desk = Desk(*paths)
    for path in paths:
        desk.receipt(path, "failed", error="IntegrityError", cause=f"cause of {path}")
    desk.report()
    text = desk.page.text
    assert text.index("cause of 011/") < text.index("3 more 012/ : IntegrityError cause of 012/")


def test_the_command_for_checking_takes_names_that_a_shell_would_not() -> None:
    given = {"s3_source_uri": "s3://a/x y/*/", "s3_destination_uri": "s3://b/$c/"}
    assert verify_command(given) == "compactor verify 's3://a/x y/*/' 's3://b/$c/' --deep"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.04 s"), (1.44, "1.4 s"), (12, "12 s"), (200, "3 min 20 s"), (7_500, "2 h 5 min")],
)
def test_seconds_are_reported_as_a_person_says_them(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text


def test_why_nothing_was_compacted_is_said_once_and_first() -> None:
    desk = Desk("a/")
    desk.receipt("a/", left_alone={"binary": LeftAlone(9, 90, "a/k", "NUL bytes")})
    headline = desk.report().headline
    text = desk.page.text
    remedy = "none: they are no lines of text"
    assert headline == f"0 of 9 objects compacted, 9 left alone: binary, {remedy}"
    assert text.count(headline) == 1
    assert text.index(headline) < text.index("Objects 0 → 0")
