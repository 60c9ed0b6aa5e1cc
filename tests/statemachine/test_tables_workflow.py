"""Every path through the state machine of maintenance, run by the local engine.

Lists, plans and services are stand-ins; leases, Athena's steps, receipts and the report are
 the real handlers.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from compactor.clock import SystemClock
from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_local.embedded import EmbeddedS3
from compactor_local.engine import BRIDGES, Engine, EngineOptions, WorkflowResult
from compactor_tables.lease import Leases
from compactor_tables.maintenance_receipts import read_receipt
from compactor_tables.maintenance_report import TablesReport, read_report
from tests.statemachine.fake_tables import services
from tests.support.embedded import find_embedded
from tests.support.tables_model import TABLES_HANDLERS, local_definition

BUCKET = "lake"
_FAKES = ("list_tables", "plan_table", "athena_step")
HANDLERS = {**TABLES_HANDLERS, **{n: f"tests.statemachine.fake_tables.{n}" for n in _FAKES}}
ATHENA = "arn:aws:states:::athena:startQueryExecution.sync"
SPARK = "arn:aws:states:::emr-serverless:startJobRun.sync"
STAND_INS = {
    **BRIDGES,
    SPARK: "tests.statemachine.fake_tables.stand_ins:spark",
    ATHENA: "tests.statemachine.fake_tables.stand_ins:athena",
}
_names = itertools.count()
GOOD, OTHER = "sql:s3://lake/catalog#silver.good", "delta:s3://lake/gold/other/"
OTHER_SHOWN = OTHER.replace("/", "-")


@dataclass(frozen=True)
class Ran:
    """A finished execution and what it left."""

    run_id: str
    result: WorkflowResult
    store: S3Store
    state_uri: str

    @property
    def report(self) -> TablesReport:
        found = read_report(parse_location(self.state_uri), self.run_id, self.store)
        assert found is not None
        return found

    @property
    def statuses(self) -> dict[str, str]:
        return {one.table: one.status for one in self.report.tables}

    def leases(self) -> Leases:
        return Leases(self.store, parse_location(self.state_uri), SystemClock())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("athena") / "world.json"


@pytest.fixture(scope="module")
def engine(s3: EmbeddedS3, world: Path) -> Iterator[Engine]:
    s3.create_bucket(BUCKET)
    environment = {**s3.environment, services.ATHENA_WORLD: str(world)}
    with Engine(
        EngineOptions(wait_scale=0, environment=environment), endpoint_url=s3.endpoint_url
    ) as running:
        yield running


@pytest.fixture(scope="module")
def store(s3: EmbeddedS3) -> Iterator[S3Store]:
    with pytest.MonkeyPatch.context() as patch:
        find_embedded(s3, patch)
        yield S3Store(make_client())


@pytest.fixture(scope="module")
def run(engine: Engine, store: S3Store, tmp_path_factory: pytest.TempPathFactory) -> Any:
    def start(engines: Mapping[str, str], run_id: str = "", **more: Any) -> Ran:
        number = next(_names)
        state_uri = more.pop("s3_state_uri", f"s3://{BUCKET}/state-{number}/")
        scratch = tmp_path_factory.mktemp("scratch")
        definition = local_definition(scratch)
        options = EngineOptions(wait_scale=0, definition=definition, bridges=STAND_INS)
        (scratch / "calls").touch()
        run_id = run_id or f"run-{number}"
        given = {
            "s3_state_uri": state_uri,
            "engines": dict(engines),
            "scratch": str(scratch),
            "trouble": {},
            **more,
        }
        result = engine.run(
            given, run_name=run_id, workers=2, handler_modules=HANDLERS, options=options
        )
        return Ran(run_id, result, store, state_uri)

    return start


ATHENAS, OWNED = "glue:bronze.events", "glue:bronze.owned"
NOT_WORTH_IT, ANOTHERS = "delta:s3://lake/gold/small/", "delta:s3://lake/gold/anothers/"
HALF, GIVES_WAY = "delta:s3://lake/gold/half/", "delta:s3://lake/gold/gives-way/"


@pytest.fixture(scope="module")
def good(run: Any, store: S3Store, world: Path) -> tuple[Ran, list[str]]:
    """A run over tables of each kind that succeeds, and what Athena was sent."""
    state = f"s3://{BUCKET}/good/"
    leases = Leases(store, parse_location(state), SystemClock())
    leases.take(parse_table(ANOTHERS), "another", engine="spark")
    leases.take(parse_table(GOOD), "stopped", engine="spark")
    services.new_world(world, store, reasons=services.MORE)
    engines = {
        GOOD: "spark",
        ATHENAS: "athena",
        OWNED: "spark",
        NOT_WORTH_IT: "none",
        ANOTHERS: "spark",
        HALF: "spark",
        GIVES_WAY: "spark",
    }
    once = ["TransientStoreError"]
    trouble = {"list_tables": once, f"plan_table {GOOD.replace('/', '-')}": once}
    ran = run(engines, run_id="stopped", s3_state_uri=state, trouble=trouble)
    sent = json.loads(world.read_text(encoding="utf-8"))["sent"]
    return ran, [*sent.values()]


def test_each_table_goes_to_its_engine_and_the_run_succeeds(good: tuple[Ran, list[str]]) -> None:
    ran, _ = good

    assert (ran.result.status, ran.result.error) == ("SUCCEEDED", None), ran.result.cause
    assert ran.statuses == {
        GOOD: "done",
        ATHENAS: "done",
        OWNED: "left",
        NOT_WORTH_IT: "left",
        ANOTHERS: "left",
        HALF: "more",
        GIVES_WAY: "more",
    }
    totals = ran.report.totals
    assert ran.result.output["totals"]["tables"] == totals.tables == 7
    assert (totals.done, totals.left, totals.more, totals.failed) == (2, 3, 2, 0)
    assert totals.files == 18 + 18 + 9
    assert ran.result.progress.partitions_total == 7


def test_athena_is_asked_again_where_it_takes_more_runs(
    good: tuple[Ran, list[str]], store: S3Store
) -> None:
    ran, sent = good

    assert [one.partition(" ")[0] for one in sent] == [
        *["OPTIMIZE"] * 3,
        "SELECT",
        "OPTIMIZE",
        "SELECT",
        "ALTER",
        *["VACUUM"] * 2,
    ]
    assert sent[0] == 'OPTIMIZE "events" REWRITE DATA USING BIN_PACK WHERE "kind" = \'0\''
    receipt = read_receipt(parse_location(ran.state_uri), ran.run_id, ATHENAS, store)
    assert receipt is not None
    # Runs that did a part of the work count as failed, and are free.
    assert receipt.scanned_bytes == 6 * 25_000_000
    assert receipt.expired == 1


def test_what_is_left_says_why(good: tuple[Ran, list[str]]) -> None:
    whys = {one.table: one.why for one in good[0].report.tables}

    assert whys[NOT_WORTH_IT] == "it does not pay"
    assert whys[ANOTHERS] == (
        f"run another works on {ANOTHERS} with spark; if it has ended, --name another resumes it"
    )
    assert whys[OWNED].startswith("Glue owns it: its optimizers compaction are on")


def test_what_gave_way_or_ran_out_of_time_is_no_failure(good: tuple[Ran, list[str]]) -> None:
    lines = {one.table: one.line for one in good[0].report.tables}

    assert good[0].report.totals.gave_way == 2
    assert lines[GIVES_WAY] == (
        f"{GIVES_WAY}: more by spark, no file rewritten, 3 versions expired, gave way in 2"
        " partitions, another writer came first in kind=0; the next run"
    )


def test_tables_are_given_back_and_anothers_is_not(good: tuple[Ran, list[str]]) -> None:
    """The first of them was taken by this very run, which was stopped."""
    ran, _ = good
    for table in (GOOD, ATHENAS, HALF):
        lease = ran.leases().look(parse_table(table))
        assert lease is not None
        assert lease.run_id == ""
    lease = ran.leases().look(parse_table(ANOTHERS))
    assert lease is not None
    assert lease.run_id == "another"


FAILS, DIES = "delta:s3://lake/gold/fails/", "delta:s3://lake/gold/dies/"
UNKNOWN, SIXTH = "delta:s3://lake/gold/abacus/", "delta:s3://lake/silver/fails/"


@pytest.fixture(scope="module")
def bad(run: Any, store: S3Store, world: Path) -> Ran:
    """A run in which every table fails its own way, but one."""
    services.new_world(world, store, may_delete=False)
    engines = {
        FAILS: "spark",
        GOOD: "spark",
        DIES: "spark",
        OTHER: "spark",
        ATHENAS: "athena",
        UNKNOWN: "abacus",
        SIXTH: "spark",
    }
    ran: Ran = run(engines, trouble={f"plan_table {OTHER_SHOWN}": ["IntegrityError"] * 9})
    return ran


def test_failed_tables_fail_the_run_and_no_other_table(bad: Ran) -> None:
    assert (bad.result.status, bad.result.error) == ("FAILED", "TablesFailed")
    assert bad.statuses == {
        table: "done" if table == GOOD else "failed"
        for table in (FAILS, GOOD, DIES, OTHER, ATHENAS, UNKNOWN, SIXTH)
    }
    assert bad.result.progress.partitions_failed == 6
    assert (bad.result.cause or "").startswith(f"{FAILS}: failed by spark")
    assert (bad.result.cause or "").endswith("and 1 tables more")


def test_each_failure_says_why(bad: Ran) -> None:
    whys = {one.table: one.why for one in bad.report.tables}

    # The engine's own words are nearer to the cause than Step Functions'.
    assert whys[FAILS] == "kind=0 rolled back: as its name says (and 1 more)"
    assert whys[DIES] == "States.TaskFailed: exit status 1"
    assert whys[OTHER] == f"IntegrityError: plan_table {OTHER_SHOWN}: as the script says"
    assert "s3:DeleteObject" in whys[ATHENAS]
    assert whys[UNKNOWN] == "abacus left no receipt: what it did is unknown"


def test_a_table_that_failed_is_given_back(bad: Ran) -> None:
    for table in (FAILS, DIES, ATHENAS, UNKNOWN):
        lease = bad.leases().look(parse_table(table))
        assert lease is not None
        assert lease.run_id == ""


def test_the_children_that_failed_are_named_in_the_results(bad: Ran, s3: EmbeddedS3) -> None:
    client = boto3.client("s3", endpoint_url=s3.endpoint_url)
    prefix = f"{bad.state_uri.removeprefix(f's3://{BUCKET}/')}runs/{bad.run_id}/tables.json.results"
    found = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    names = sorted(one["Key"].rpartition("/")[2] for one in found)
    assert names == ["FAILED_0.json", "SUCCEEDED_0.json", "manifest.json"]


def test_invalid_input_ends_the_run_with_its_own_error(run: Any) -> None:
    ran = run({GOOD: "spark"}, trouble={"list_tables": ["InvalidInput"] * 9})

    assert (ran.result.status, ran.result.error) == ("FAILED", "InvalidInput")


def test_a_run_without_a_table_reports_so(run: Any) -> None:
    ran = run({})

    assert ran.result.status == "SUCCEEDED"
    assert ran.report.totals.tables == 0


def test_a_list_that_cannot_be_read_fails_the_run_with_a_report(run: Any) -> None:
    ran = run({GOOD: "spark"}, list_key="nowhere.json")

    assert (ran.result.status, ran.result.error) == ("FAILED", "TablesFailed")
    assert "NoSuchKey" in ran.report.cause
    assert ran.report.cause.count("ended without a word") == 1


def test_a_dry_run_touches_nothing(run: Any) -> None:
    ran = run({GOOD: "spark", "glue:bronze.dry": "athena"}, dry_run=True)
    assert ran.statuses == {GOOD: "left", "glue:bronze.dry": "left"}
    assert ran.report.tables[0].why == "a dry run; spark would do it: as told"
    assert ran.leases().look(parse_table(GOOD)) is None
