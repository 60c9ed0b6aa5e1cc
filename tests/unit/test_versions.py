"""Each document of the state tells its version, and a later one is refused by one clear line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from compactor.cleaning.records import check_record
from compactor.decoding import numbered, require_version
from compactor.discovery.work import WorkItem
from compactor.errors import IntegrityError, InvalidInput
from compactor.log.passed import has_passed
from compactor.log.schemes import check_scheme
from compactor.probe import records as probe_records
from compactor.report.report import RunIdentity, report
from compactor_cli.commands import ls, main
from compactor_cli.deployed.reports import report_below
from compactor_spark.places import RunPlace, load_run
from tests.support.old_states import STATE, WHERE, OldState, load

NEWEST = "dda4ecf"
FIRST = f"{1:020d}"


@dataclass(frozen=True)
class Document:
    """One object of the state, and what reads it."""

    key: str
    read: Callable[[OldState], Any]

    def change(self, old: OldState, **fields: Any) -> None:
        """Set some of its fields."""
        packed = self.key.endswith(".gz")
        body = old.store.get("lake", STATE + self.key)
        document = json.loads(gzip.decompress(body) if packed else body) | fields
        body = json.dumps(document).encode()
        old.store.put("lake", STATE + self.key, gzip.compress(body) if packed else body)


def made_again(run_id: str, old: OldState) -> Any:
    return report(RunIdentity(run_id, "2025-06-01T00:00:00Z"), old.settings, old.store)


def record(old: OldState) -> None:
    commit = "00000000000000090000000000005eed"
    check_record(old.store, "lake", f"{STATE}partitions/denied/cleaned/{FIRST}.json", commit)


def passed(old: OldState) -> bool:
    return has_passed(old.settings.state, "csv/", 1, "00000000000000070000000000005eed", old.store)


def pinned(old: OldState) -> Any:
    pin = pytest.importorskip("compactor_spark.columnar.pin")
    return pin._load(old.settings, old.store)


def of_spark(old: OldState) -> Any:
    return load_run(RunPlace("lake", f"{STATE}runs/run-1/"), old.store)


def claimed(old: OldState) -> Any:
    log = old.log("json/")
    return log.claim(log.load())


DOCUMENTS = {
    "entry": Document(
        f"partitions/crash/commits/{FIRST}.json.gz", lambda old: old.log("crash/").load()
    ),
    "checkpoint": Document(
        f"partitions/json/commits/{2:020d}.checkpoint.json.gz", lambda old: old.log("json/").load()
    ),
    "identity": Document("identity.json", claimed),
    "scheme": Document(f"schemes/{FIRST}.json", lambda old: check_scheme(old.settings, old.store)),
    "Parquet schema": Document(f"parquet-schemas/{FIRST}.json", pinned),
    "record of clean-up": Document(f"partitions/denied/cleaned/{FIRST}.json", record),
    "passed record": Document(f"partitions/csv/passed/{FIRST}.json", passed),
    "discovery": Document("runs/run-1/discovery.json", partial(made_again, "run-1")),
    "discovery, for Spark": Document("runs/run-1/discovery.json", of_spark),
    "receipt": Document(
        "runs/run-1/receipts/json-24f2fc4407899db1.json", partial(made_again, "run-1")
    ),
    "receipt of clean-up": Document(
        "runs/run-3/clean-ups/json-24f2fc4407899db1.json", partial(made_again, "run-3")
    ),
    "report": Document(
        "runs/run-1/report.json",
        lambda old: report_below(old.settings.s3_state_uri, "run-1", old.store),
    ),
}


@pytest.fixture
def old() -> OldState:
    return load(NEWEST)


@pytest.mark.parametrize("version", [2, 17, 0, -1])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_version_that_is_not_known_is_refused_by_one_line_that_says_all(
    old: OldState, name: str, version: int
) -> None:
    document = DOCUMENTS[name]
    document.change(old, version=version)
    wanted = (
        f"s3://lake/{STATE}{document.key} has version {version}, and this program reads version 1"
    )
    with pytest.raises(IntegrityError) as refused:
        document.read(old)
    assert str(refused.value).startswith(wanted)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_later_version_is_refused_whatever_became_of_its_fields(old: OldState, name: str) -> None:
    document = DOCUMENTS[name]
    key = STATE + document.key
    body = b'{"version": 2, "all": "else"}'
    old.store.put("lake", key, gzip.compress(body) if key.endswith(".gz") else body)
    with pytest.raises(IntegrityError, match="has version 2"):
        document.read(old)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_fields_that_are_not_known_in_a_version_that_is_are_passed_over(
    old: OldState, name: str
) -> None:
    document = DOCUMENTS[name]
    before = document.read(load(NEWEST))
    document.change(old, some_day=[{"a": 1}], version=1)
    after = document.read(old)
    if name == "report":
        assert before is not None
        assert {**before.document, "some_day": [{"a": 1}], "version": 1} == after.document
    else:
        assert after == before


@pytest.mark.parametrize("name", ["settings.json", "oversized.json"])
def test_fields_of_a_runs_input_and_of_its_work_are_refused_where_they_are_not_known(
    old: OldState, name: str
) -> None:
    key = f"{STATE}runs/run-1/{name}"
    item = WorkItem("a/", "source", "logs/a/", 1, 1).to_dict() | {"some_day": 1}
    given = json.loads(old.store.get("lake", key))
    changed = [item] if name == "oversized.json" else given | {"some_day": 1}
    old.store.put("lake", key, json.dumps(changed).encode())
    with pytest.raises(InvalidInput, match="some_day"):
        of_spark(old)


def test_the_memory_of_a_store_in_another_version_is_no_memory(old: OldState) -> None:
    (key,) = old.store.contents("lake", f"{STATE}probes/")
    known = probe_records.read(old.settings.state, old.store)
    assert known is not None
    memory = Document(key.removeprefix(STATE), lambda _: None)
    memory.change(old, some_day=1)
    assert probe_records.read(old.settings.state, old.store) == known
    memory.change(old, version=2)
    assert probe_records.read(old.settings.state, old.store) is None
    probe_records.write(known, old.settings.state, old.store)
    assert json.loads(old.store.get("lake", key))["version"] == 1


def test_a_command_tells_of_a_later_version_in_one_line(
    old: OldState, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ls, "open_store", lambda *_: old.store)
    DOCUMENTS["entry"].change(old, version=2)
    assert main(["ls", WHERE[1]]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert f"crash/commits/{FIRST}.json.gz has version 2, and this program reads version 1" in line


def test_a_run_that_meets_a_later_version_writes_nothing_to_that_log(old: OldState) -> None:
    DOCUMENTS["entry"].change(old, version=2)
    before = old.store.contents("lake", f"{STATE}partitions/")
    old.add("crash/c.json", b'{"id": 1}\n')
    with pytest.raises(IntegrityError, match="has version 2"):
        old.run()
    assert old.store.contents("lake", f"{STATE}partitions/crash/").items() <= before.items()
    assert not old.store.contents("lake", "compacted/crash/")


def test_the_line_names_all_versions_that_are_read() -> None:
    body = json.dumps(numbered({"a": 1}, 4)).encode()
    require_version("here", body, 4)
    with pytest.raises(IntegrityError, match=r"here has version 4, .* reads versions 1 to 3"):
        require_version("here", body, 3)


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b'{"version": "1"}', b"\xff"])
def test_what_is_no_document_is_left_to_whoever_decodes_it(body: bytes) -> None:
    require_version("here", body, 1)
