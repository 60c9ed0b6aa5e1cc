"""``compactor maintain plan``: what a person sees, and what a script gets."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from compactor_cli import commands as cli
from tests.support.memory_store import ManualClock, MemoryStore

pytest.importorskip("pyiceberg")

from tests.support.maintained_tables import BUCKET, DeltaLines, added

ORDERS, ITEMS = f"delta:s3://{BUCKET}/gold/orders/", f"delta:s3://{BUCKET}/gold/items/"


@pytest.fixture(autouse=True)
def lake(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Two tables: one of many small files in two partitions, one of three files."""
    store = MemoryStore(ManualClock(1_700_000_000.0))
    store.add_bucket(BUCKET)
    orders = DeltaLines(store, "gold/orders/", ["day"])
    for day in "12":
        files = (
            added(f"{day}-{n}", 100_000, deleted=n % 2, partitionValues={"day": day})
            for n in range(20 * int(day))
        )
        orders.commit(*files)
    DeltaLines(store, "gold/items/").commit(*(added(f"{n}", 5_000_000) for n in range(3)))
    monkeypatch.setattr("compactor_cli.commands.maintain.open_store", lambda *_: store)
    return store


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(["maintain", *words]) == code
    return capsys.readouterr().out


def test_a_plan_shows_what_would_be_done_and_why(capsys, tmp_path: Path):
    policies = tmp_path / "policies.json"
    policies.write_text(
        '[{"match": ["delta:*orders*"], "num_files": 2}, {"match": ["*"], "leave": true}]'
    )
    given = ("--delta-prefixes", f"s3://{BUCKET}/gold/", "--policies", str(policies))
    out = told(capsys, "plan", *given)
    assert (
        f"{ORDERS}: spark, the worker does not rewrite by num_files; athena rewrites tables of"
        " Iceberg alone (rule 1 (delta:*orders*))" in out
    )
    assert f"{ITEMS}: none, the rule says to leave it (rule 2 (*))" in out
    items, orders = json.loads(told(capsys, "plan", *given, "--json"))["tables"]
    assert (items["engine"], orders["engine"]) == ("none", "spark")
    assert orders["rewrite"] == {"files": 60, "bytes": 6_000_000}
    assert orders["costs"]["spark"] > 0


def test_a_plan_takes_the_input_of_the_state_machine(capsys, tmp_path: Path, monkeypatch):
    given: dict[str, Any] = {"s3_state_uri": "s3://state/m/", "tables": [ORDERS]}
    path = tmp_path / "input.json"
    path.write_text(json.dumps(given))
    assert len(json.loads(told(capsys, "plan", "--input", str(path), "--json"))["tables"]) == 1
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(given)))
    assert ORDERS in told(capsys, "plan", "--input", "-")


def test_a_plan_knows_only_the_engines_that_there_are(capsys):
    (only,) = json.loads(told(capsys, "plan", ORDERS, "--engine", "athena", "--json"))["tables"]
    assert (only["engine"], only["unable"]["spark"]) == ("none", "there is no spark here")


def test_a_table_that_cannot_be_read_keeps_no_other_from_being_shown(capsys):
    missing = f"delta:s3://{BUCKET}/nothing/"
    assert cli.main(["maintain", "plan", ORDERS, missing]) == 1
    out, err = capsys.readouterr()
    assert ORDERS in out
    assert err.startswith(f"compactor: {missing}: InvalidInput: ")
    assert cli.main(["maintain", "plan", ORDERS, missing, "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["tables"]
    assert "error" not in first
    assert second == {"table": missing, "error": second["error"]}
    assert cli.main(["maintain", "plan", missing]) == 2


def test_where_no_table_is_found_it_is_said(capsys):
    assert "no table matches s3://lake/else/" in told(
        capsys, "plan", "--delta-prefixes", f"s3://{BUCKET}/else/"
    )


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ([], "tables"),
        (["bronze.events"], "tables"),
        (["--input", "/does/not/exist.json"], "--input"),
        ([ORDERS, "--policies", "/does/not/exist.json"], "--policies"),
        ([ORDERS, "--input", "x.json"], "--input"),
        ([ORDERS, "--policies", "{twice}"], "--policies"),
        ([ORDERS, "--policies", "{wrong}"], r"policies\[1\].engine"),
    ],
)
def test_wrong_input_is_one_line_that_names_the_field(capsys, tmp_path, words, field):
    files = {"{twice}": '[{"match": ["a"], "match": ["b"]}]'}
    files["{wrong}"] = '[{"match": ["a"], "engine": "duck"}]'
    for number, word in enumerate(words):
        if word in files:
            (tmp_path / "p.json").write_text(files[word])
            words = [*words[:number], str(tmp_path / "p.json")]
    assert cli.main(["maintain", "plan", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert field.replace("\\", "") in err
