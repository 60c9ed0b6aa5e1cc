"""The pages in a real browser: at every width and in both schemes people can read and use them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compactor.log.left_alone import LeftAlone
from compactor.log.size_counts import SizeCounts
from compactor.log.state import QuarantineLine
from compactor.model import Skipped
from compactor.report.page import render
from compactor.runs.partition_receipts import Counts
from compactor_dev.browser import Browser, missing, open_browser
from tests.support.desk import HOSTILE, Desk

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

TELEPHONE, TABLET, DESK = 390, 768, 1_200
WIDTHS = [TELEPHONE, TABLET, DESK]
LONG = "a-name-without-any-blank-" * 12
BREAKOUT = '"><script>document.title = "taken"; console.error("taken")</script>'


# Elements whose block leaves their text less than its first twelve characters, one line each.
NARROW = """
const pen = document.createElement('canvas').getContext('2d'), found = []
for (const one of document.body.querySelectorAll('*')) {
  const texts = [...one.childNodes].filter(node => node.nodeType === Node.TEXT_NODE)
  const text = texts.map(node => node.data.trim()).join(' ').trim()
  if (!text || one.closest('svg') || !one.checkVisibility()) continue
  let block = one
  while (getComputedStyle(block).display === 'inline') block = block.parentElement
  const style = getComputedStyle(one), box = getComputedStyle(block)
  if (box.clipPath !== 'none' || block.closest('thead') && getComputedStyle(
    block.closest('thead')).clipPath !== 'none') continue
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`
  const width = block.clientWidth - parseFloat(box.paddingLeft) - parseFloat(box.paddingRight)
  const needed = pen.measureText(text.slice(0, 12)).width
  if (width + 1 < needed) found.push(`${one.tagName} ${width} < ${needed}: ${text.slice(0, 40)}`)
}
return found
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def full_report() -> dict[str, Any]:
    """Of a run with everything that a page can show, and names that are long or hostile."""
    paths = [f"{n:03}/" for n in range(30)] + [LONG + "/", BREAKOUT + "/"]
    desk = Desk(*paths, oversized=(LONG,), spark_engine="none", min_objects=2)
    for n, path in enumerate(paths):
        sizes = SizeCounts([1, *[0] * 9, 40 + n, 2], [0] * 27 + [1])
        requests = {"GET": 12_345, "LIST": 1, "bytes_read": 9 << 30, HOSTILE: 1}
        counts = Counts(43 + n, 43_000, 1, 40_000, 99, seconds=n / 3, requests=requests)
        failed = {"error": "IntegrityError", "cause": f"{LONG} {BREAKOUT}"} if n % 15 == 7 else {}
        desk.receipt(
            path,
            "failed" if failed else "done",
            counts=counts,
            sizes=sizes,
            skipped={"too_young": Skipped(5, 50, (LONG, BREAKOUT))},
            quarantined=[QuarantineLine(f"{LONG}{BREAKOUT}", "binary", HOSTILE)],
            left_alone={"binary": LeftAlone(1, 1, LONG, BREAKOUT, "encoding")},
            overwritten=Skipped(1, 1, (LONG,)),
            **failed,
        )
    document = msgspec.to_builtins(desk.report(f"States.Timeout: {LONG}"))
    clean_up = {
        **dict.fromkeys(("partitions", "commits", "deleted", "deleted_bytes", "changed"), 1_000),
        **dict.fromkeys(("refused", "markers", "uploads_aborted"), 0),
        "requests": {"DELETE": 3},
        "unsafe": [LONG],
        "failures": [],
        "warnings": [BREAKOUT],
        "refusals": [{"key": LONG, "reason": BREAKOUT}],
    }
    table = {"table": "glue:a.b", "status": "done", "at": LONG, "error": "", "cause": ""}
    numbers = dict.fromkeys(("outputs", "rows", "commits", "conflicts", "last"), 7)
    lines = [
        {
            "run_id": LONG,
            "started_at": f"2026-01-{2 + n // 24:02}T{n % 24:02}:00:00Z",
            "wall_seconds": 40.0 + n,
            "status": "succeeded" if n % 7 else "failed",
            "objects": 1_000,
        }
        for n in range(29)
    ]
    document |= {"previous": lines, "wall_seconds": 75.5}
    told = {"clean_up": clean_up, "table": {**table, **numbers, "faults": [LONG]}}
    return {**document, **told, "warnings": [LONG], "headline": f"left alone: {BREAKOUT}"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pages") / "report.html"
    file.write_text(render(full_report(), stored=True), "utf-8")
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_of_the_page_keeps_anybody_from_reading_it(
    browser: Browser, page: Path, width: int, scheme: str
) -> None:
    browser.show(page, width=width, scheme=scheme)
    browser.open_all()
    # axe-core, contrast as WCAG AA wants it among it; also what it could not decide.
    assert browser.violations() == []
    assert browser.console() == []


@pytest.mark.parametrize("width", [320, *WIDTHS])
def test_the_page_never_scrolls_sideways(browser: Browser, page: Path, width: int) -> None:
    browser.show(page, width=width)
    browser.open_all()
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    assert browser.ask("return document.querySelectorAll('svg rect').length") > 30


@pytest.mark.parametrize("width", [*WIDTHS, 641, 833])
def test_every_text_has_room_for_twelve_of_its_characters(
    browser: Browser, page: Path, width: int
) -> None:
    browser.show(page, width=width)
    browser.open_all()
    assert browser.ask(NARROW) == []


def test_a_text_without_room_is_found(browser: Browser, page: Path, tmp_path: Path) -> None:
    narrow = "<p style='width: 60px; overflow-wrap: anywhere'>unreadable_here</p>"
    worse = tmp_path / "narrow.html"
    worse.write_text(page.read_text("utf-8").replace("<main>", f"<main>{narrow}"), "utf-8")
    browser.show(worse, width=DESK)
    (found,) = browser.ask(NARROW)
    assert found.startswith("P 60 <")


def test_a_key_that_would_be_a_script_is_refused(browser: Browser, page: Path) -> None:
    browser.show(page, width=DESK)
    assert browser.ask("return document.title").startswith("Compaction run-1")
    assert browser.ask("return document.querySelectorAll('script').length") == 0
    assert BREAKOUT in browser.ask("return document.body.innerText")
    assert browser.console() == []


def test_the_schemes_are_two(browser: Browser, page: Path) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        browser.show(page, width=DESK, scheme=scheme)
        grounds.append(browser.ask("return getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(244, 246, 248)", "rgb(15, 20, 26)"]


def test_on_paper_the_page_is_black_on_white_and_what_is_folded_is_there(
    browser: Browser, page: Path
) -> None:
    browser.show(page, width=DESK, scheme="dark")
    browser.print_media()
    colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    assert browser.ask(colours) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    folded = "return document.querySelector('details table, details ol').getClientRects().length"
    assert browser.ask(folded) > 0


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("<p style='color:#999;background:#fff'>pale</p>", "color-contrast"),
        ("<img src='data:,'>", "image-alt"),
    ],
)
def test_what_looks_at_the_pages_sees_such_faults(
    browser: Browser, page: Path, tmp_path: Path, fault: str, rule: str
) -> None:
    worse = tmp_path / "worse.html"
    worse.write_text(page.read_text("utf-8").replace("<main>", f"<main>{fault}"), "utf-8")
    browser.show(worse, width=DESK)
    assert [one.partition(":")[0] for one in browser.violations()] == [rule]
