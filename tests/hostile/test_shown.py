"""What comes from outside is shown, and never obeyed: on the report's page, in the terminal."""

from __future__ import annotations

import re
import types
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.clock import NoDeadline
from compactor.discovery.discover import discover
from compactor.discovery.work_list import write_work
from compactor.errors import IntegrityError
from compactor.escaping import visible
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.report.page import render
from compactor.report.report import RunIdentity, report
from compactor_cli import commands as cli
from compactor_cli.command_line import Action
from compactor_cli.console import print_error, print_line, print_table
from tests.hostile.names import HOSTILE, RICH, TERMINAL
from tests.support.desk import Page
from tests.support.examples import NOW, settings
from tests.support.memory_store import ManualClock, MemoryStore

STYLES = re.compile(r"\x1b\[[0-9;]*m")


def with_hostile_texts(value: Any, hostile: str) -> Any:
    """The document with every text in it made hostile, but for names of fields and of formats."""
    if isinstance(value, str):
        return value + hostile
    if isinstance(value, list | tuple):
        return [with_hostile_texts(one, hostile) for one in value]
    if isinstance(value, dict):
        return {
            name: text if name == "format" else with_hostile_texts(text, hostile)
            for name, text in value.items()
        }
    return value


def a_report() -> dict[str, Any]:
    """Of a run with a failure, skipped and quarantined sources, and partitions for Spark."""
    store, given_ = (
        MemoryStore(ManualClock(NOW)),
        settings(depth=1, spark_engine="none", exclude=["*excluded"]),
    )
    store.add_bucket("lake")
    for name in ("a/x.log", "b/x.log", "b/y.log"):
        store.seed("source", f"logs/{name}", b"record\n", last_modified=NOW - 9e6)
    store.seed("source", "logs/a/binary", b"\0", last_modified=NOW - 9e6)
    store.seed("source", "logs/a/excluded", b"record\n", last_modified=NOW - 9e6)
    found = discover(given_, store, NOW)
    write_work(found, given_, "run-1", store)
    (item, _) = found.partitions
    run = PartitionRun(item, given_, store, ManualClock(NOW), NoDeadline(), "run-1")
    compact_partition(run, Counts())
    made = report(RunIdentity("run-1", "2026-01-02", failure="what failed"), given_, store)
    document: dict[str, Any] = msgspec.to_builtins(made)
    assert document["partitions"][0]["quarantined"]
    assert document["skipped"]
    return {**document, "oversized": ["large/"], "spark_failure": "Spark failed"}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_in_a_report_becomes_an_element_or_an_attribute_of_its_page(hostile: str) -> None:
    document = a_report()
    page, sound = Page(render(with_hostile_texts(document, hostile))), Page(render(document))
    assert set(page.tags) == set(sound.tags)
    assert {name for name, _ in page.attributes} == {name for name, _ in sound.attributes}
    shown = "".join(page.texts)
    assert shown.count(visible(hostile)) > 12
    assert shown.replace("\n", "").isprintable()


def test_names_of_fields_that_come_from_outside_are_escaped_as_well() -> None:
    document = a_report()
    skipped = dict.fromkeys(HOSTILE, next(iter(document["skipped"].values())))
    requests = dict.fromkeys(HOSTILE, 1)
    totals = {**document["totals"], "requests": requests}
    page = Page(render({**document, "skipped": skipped, "totals": totals}))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert "".join(page.texts).replace("\n", "").isprintable()


@given(st.text())
def test_what_is_made_visible_is_printable_and_printable_text_stays_as_it_is(text: str) -> None:
    assert visible(text).isprintable()
    assert (visible(text) == text) == text.isprintable()
    assert len(visible(text)) >= len(text)


# The terminal.


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("colours", [True, False])
def test_no_key_is_obeyed_by_the_terminal(
    hostile: str,
    colours: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if colours:
        monkeypatch.setenv("FORCE_COLOR", "1")
    print_line(f"key {hostile}", "bold")
    print_error(f"key {hostile}")
    print_table(f"title {hostile}", ("Key", "Number"), [(hostile, "1"), ("[red]", hostile)])
    out, err = capsys.readouterr()
    assert ("\x1b" in out) is colours
    plain = STYLES.sub("", out)
    assert plain.replace("\n", "").isprintable()
    assert err.replace("\n", "").isprintable()
    assert f"key {visible(hostile)}\n" in plain
    assert f"title {visible(hostile)}\n" in plain
    # Rich folds long cells and draws lines between them.
    cells = re.sub(r"[\s\u2500-\u257f]", "", plain)
    assert re.sub(r"[\s\u2500-\u257f]", "", visible(hostile)) in cells
    assert "[red]" in cells


def test_an_error_with_a_hostile_key_is_one_line_that_can_be_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(args: object) -> int:
        raise IntegrityError(f"{TERMINAL}\n{RICH}: its slice overlaps")

    module = types.SimpleNamespace(run=Action(fail, []))
    monkeypatch.setattr(cli, "import_module", lambda name: module)
    assert cli.main(["plan"]) == 1
    err = capsys.readouterr().err
    assert err.endswith("\n")
    assert err.removesuffix("\n").isprintable()
    assert "\\x1b[31mred" in err
