"""Each document of the state names its version, and a later one is refused by one clear line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from compactor.cleaning.clean_up_records import check_record
from compactor.decoding import numbered, require_version
from compactor.errors import IntegrityError, InvalidInput
from compactor.probe.probe import traits_for
from compactor.report.report import RunIdentity, report
from compactor_cli.commands import ls, main
from compactor_cli.stored_reports import report_below
from compactor_spark.places import RunPlace, load_run
from tests.support.stored_state import STATE, WHERE, StoredState, load

FIRST = f"{1:020d}"


@dataclass(frozen=True)
class Document:
    """One object of the state, and what reads it."""

    key: str
    read: Callable[[StoredState], Any]

    def change(self, stored: StoredState, **fields: Any) -> None:
        """Set some of its fields."""
        packed = self.key.endswith(".gz")
        body = stored.store.get("lake", STATE + self.key)
        document = json.loads(gzip.decompress(body) if packed else body) | fields
        body = json.dumps(document).encode()
        stored.store.put("lake", STATE + self.key, gzip.compress(body) if packed else body)


def made_again(run_id: str, stored: StoredState) -> Any:
    return report(RunIdentity(run_id, "2025-06-01T00:00:00Z"), stored.settings, stored.store)


def record(stored: StoredState) -> None:
    *_, first = stored.log("denied/").every_commit()
    key = f"{STATE}partitions/denied/cleaned/{FIRST}.json"
    check_record(stored.store, "lake", key, first.commit_id)


def pinned(stored: StoredState) -> Any:
    pin = pytest.importorskip("compactor.rows.pin")
    return pin._load(stored.settings, stored.store)


def of_spark(stored: StoredState) -> Any:
    return load_run(RunPlace("lake", f"{STATE}runs/run-1/"), stored.store)


def claimed(stored: StoredState) -> Any:
    log = stored.log("json/")
    return log.claim(log.load())


DOCUMENTS = {
    "entry": Document(
        f"partitions/crash/commits/{FIRST}.json.gz", lambda stored: stored.log("crash/").load()
    ),
    "checkpoint": Document(
        f"partitions/json/commits/{2:020d}.checkpoint.json.gz",
        lambda stored: stored.log("json/").load(),
    ),
    "identity": Document("identity.json", claimed),
    "Parquet schema": Document(f"parquet-schemas/{FIRST}.json", pinned),
    "record of clean-up": Document(f"partitions/denied/cleaned/{FIRST}.json", record),
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
        lambda stored: report_below(stored.settings.s3_state_uri, "run-1", stored.store),
    ),
}


@pytest.fixture
def stored() -> StoredState:
    return load()


@pytest.mark.parametrize("version", [2, 17, 0, -1])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_version_that_is_not_known_is_refused_by_one_line_that_says_all(
    stored: StoredState, name: str, version: int
) -> None:
    document = DOCUMENTS[name]
    document.change(stored, version=version)
    wanted = (
        f"s3://lake/{STATE}{document.key} has version {version}, and this program reads version 1"
    )
    with pytest.raises(IntegrityError) as refused:
        document.read(stored)
    assert str(refused.value).startswith(wanted)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_later_version_is_refused_whatever_became_of_its_fields(
    stored: StoredState, name: str
) -> None:
    document = DOCUMENTS[name]
    key = STATE + document.key
    body = b'{"version": 2, "all": "else"}'
    stored.store.put("lake", key, gzip.compress(body) if key.endswith(".gz") else body)
    with pytest.raises(IntegrityError, match="has version 2"):
        document.read(stored)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_fields_that_are_not_known_in_a_version_that_is_are_passed_over(
    stored: StoredState, name: str
) -> None:
    document = DOCUMENTS[name]
    before = document.read(load())
    document.change(stored, some_day=[{"a": 1}], version=1)
    after = document.read(stored)
    if name == "report":
        assert before is not None
        assert {**before.document, "some_day": [{"a": 1}], "version": 1} == after.document
    else:
        assert after == before


@pytest.mark.parametrize("name", ["settings.json", "oversized/a.json"])
def test_fields_of_a_runs_input_and_of_its_work_are_refused_where_they_are_not_known(
    stored: StoredState, name: str
) -> None:
    key = f"{STATE}runs/run-1/{name}"
    changed = {"path": "a/", "bucket": "source", "prefix": "logs/a/"}
    if name == "settings.json":
        changed = json.loads(stored.store.get("lake", key))
    stored.store.put("lake", key, json.dumps(changed | {"some_day": 1}).encode())
    with pytest.raises(InvalidInput, match="some_day"):
        of_spark(stored)


def test_a_probe_record_in_another_version_is_not_used(stored: StoredState) -> None:
    (key,) = stored.store.contents("lake", f"{STATE}probes/")
    record = Document(key.removeprefix(STATE), lambda _: None)

    def requests() -> int:
        before = len(stored.store.calls)
        traits_for(stored.settings.state, stored.store, 0.0)
        return len(stored.store.calls) - before

    record.change(stored, some_day=1)
    assert requests() == 1
    record.change(stored, version=2)
    assert requests() > 1
    assert json.loads(stored.store.get("lake", key))["version"] == 1


def test_a_command_names_a_later_version_in_one_line(
    stored: StoredState, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ls, "open_store", lambda *_: stored.store)
    DOCUMENTS["entry"].change(stored, version=2)
    assert main(["ls", WHERE[1]]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert f"crash/commits/{FIRST}.json.gz has version 2, and this program reads version 1" in line


def test_a_run_that_meets_a_later_version_writes_nothing_to_that_log(stored: StoredState) -> None:
    DOCUMENTS["entry"].change(stored, version=2)
    before = stored.store.contents("lake", f"{STATE}partitions/")
    stored.add("crash/c.json", b'{"id": 1}\n')
    with pytest.raises(IntegrityError, match="has version 2"):
        stored.run()
    assert stored.store.contents("lake", f"{STATE}partitions/crash/").items() <= before.items()
    assert not stored.store.contents("lake", "compacted/crash/")


def test_the_line_names_all_versions_that_are_read() -> None:
    body = json.dumps(numbered({"a": 1}, 4)).encode()
    require_version("here", body, 4)
    with pytest.raises(IntegrityError, match=r"here has version 4, .* reads versions 1 to 3"):
        require_version("here", body, 3)


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b'{"version": "1"}', b"\xff"])
def test_what_is_no_document_is_left_to_its_decoder(body: bytes) -> None:
    require_version("here", body, 1)
