"""The documents of a run, for tests of its report; and a parser of the report's page."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import msgspec

from compactor.discovery.work_list import to_items_json
from compactor.model import Partition
from compactor.partition import receipts
from compactor.partition.receipts import Receipt
from compactor.ports import Deadline
from compactor.report.page import render
from compactor.report.report import RunIdentity, RunReport, report, report_on
from compactor.settings.settings import Settings
from tests.support.examples import settings
from tests.support.memory_store import ManualClock, MemoryStore

RUN = RunIdentity("run-1", "2026-01-03T00:00:00Z")
HOSTILE = "<script>alert('\"1\"')</script>&amp;<img src=x onerror=alert(1)>"


class Desk:
    """A store with the work list and receipts of one run."""

    def __init__(self, *paths: str, oversized: tuple[str, ...] = (), **given: Any) -> None:
        self.settings: Settings = settings(**given)
        self.store = MemoryStore(ManualClock())
        self.store.add_bucket("lake")
        self.write("items.json", to_items_json([item(path) for path in (*paths, *oversized)]))
        for path in oversized:
            self.receipt(path, oversized=True)

    def write(self, name: str, body: bytes) -> None:
        self.store.put(*self.settings.layout.run(RUN.run_id, name), body)

    def receipt(self, path: str, status: str = "done", **given: Any) -> None:
        one = Receipt(path, RUN.run_id, status, **given)
        receipts.write(one, self.settings, item(path), self.store)

    def report(self, failure: str = "", **failures: Any) -> RunReport:
        run = replace(RUN, failure=failure, **failures)
        return report(run, self.settings, self.store)

    def report_on(self, deadline: Deadline, *, goes_on: bool = False) -> RunReport | None:
        return report_on(RUN, self.settings, self.store, deadline, goes_on=goes_on)

    def spark_error(self, body: bytes) -> None:
        self.write("spark-error.json", body)

    @property
    def page(self) -> Page:
        """The stored report as a page."""
        return Page(render(msgspec.json.decode(self.stored("report.json"))))

    def stored(self, name: str) -> str:
        return self.store.get(*self.settings.layout.run(RUN.run_id, name)).decode()


def item(path: str) -> Partition:
    return Partition("source", f"logs/{path}", path)


class Page(HTMLParser):
    """Tags and text of a page.

    ``text`` is the whole text in one line, with runs of white space as one blank.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
