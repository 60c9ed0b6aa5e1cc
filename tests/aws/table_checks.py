"""Checks of tables: Glue's catalog and Athena."""

from __future__ import annotations

from typing import Any

from tests.aws.checks import CheckFailed
from tests.aws.objects import FEW, READ, key_of, put_day
from tests.aws.run_checks import given
from tests.aws.world import World

_LATE = f'{{"id": "{READ}-late"}}\n'.encode()
_OF_THE_DAY = f"WHERE id LIKE '{READ}-%'"
_ENDED = {"SUCCEEDED", "FAILED", "CANCELLED"}


def readers(world: World) -> None:
    """Athena counts each record once, before and after a run."""
    put_day(world, READ, FEW)
    fields = {"engine": "worker", "reader_table": world.runs.default_input["reader_table"]}
    machine = world.runs.state_machine_arn
    world.run("read", machine, given(world, READ, **fields))
    _require_count(world, "logs", FEW, "before", _OF_THE_DAY)
    key = key_of(READ, FEW)
    world.client("s3").put_object(Bucket=world.names.source, Key=key, Body=_LATE)
    world.run("late", machine, given(world, READ, **fields))
    _require_count(world, "logs", FEW + 1, "after", _OF_THE_DAY)


def upsert(world: World) -> None:
    """Two runs leave the last record of each key in a table of Glue's catalog."""
    world.client("emr-serverless")
    for number, name in enumerate(("one", "two")):
        line = f'{{"id": 1, "at": {number}, "name": "{name}"}}\n'.encode()
        key = f"people/2026/01/0{number + 1}/{name}.json"
        world.client("s3").put_object(Bucket=world.names.source, Key=key, Body=line)
        young = {"settle_seconds": 0}
        machine = world.tables.state_machine_arn
        world.run(f"upsert-{name}", machine, {**world.tables.default_input, **young})
    _require_count(world, "people", 1, "after two runs")


def athena_maintenance(world: World) -> None:
    """OPTIMIZE and VACUUM run by the role of the state machine."""
    world.client("athena")
    policies = [{"match": ["*"], "engine": "athena", "closed_after_seconds": 0, "min_files": 2}]
    machine = world.maintenance.tables_machine_arn
    world.run("athena", machine, {**world.maintenance.tables_input, "policies": policies})


def _require_count(world: World, table: str, expected: int, when: str, where: str = "") -> None:
    place = f'"{world.names.database}"."{table}"'
    query = f"SELECT count(*) FROM {place} {where}".strip()  # noqa: S608 - names of our own
    count = int(_ask(world, query))
    if count != expected:
        raise CheckFailed(f"Athena counts {count:,} records {when}, not {expected:,}")


def _ask(world: World, query: str) -> str:
    client = world.client("athena")
    place = f"s3://{world.names.lake}/athena-results/"
    started = client.start_query_execution(
        QueryString=query, ResultConfiguration={"OutputLocation": place}
    )["QueryExecutionId"]

    def ended() -> Any:
        found = client.get_query_execution(QueryExecutionId=started)["QueryExecution"]["Status"]
        return found if found["State"] in _ENDED else None

    status = world.until("the end of the query", ended)
    if status["State"] != "SUCCEEDED":
        raise CheckFailed(f"{status['State']}: {status.get('StateChangeReason', '')}")
    rows = client.get_query_results(QueryExecutionId=started)["ResultSet"]["Rows"]
    return str(rows[1]["Data"][0]["VarCharValue"])
