"""A store that denies every write whose request does not name an encryption."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compactor.settings.encryption import ENCRYPTION_VARIABLE
from compactor_cli.failures import message_of
from compactor_local.engine import Engine, EngineOptions
from tests.faults.fault_sources import large_partition, partitions
from tests.faults.fault_world import FaultWorld
from tests.faults.processes import compactor

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
AES = {"x-amz-server-side-encryption": "AES256"}
KMS = {
    "x-amz-server-side-encryption": "aws:kms",
    "x-amz-server-side-encryption-aws-kms-key-id": KEY,
}


@contextlib.contextmanager
def demanding(world: FaultWorld, headers: Mapping[str, str], named: str) -> Iterator[Engine]:
    """An engine whose workers name an encryption, before a store that demands one."""
    proxy = world.bench.proxy
    environment = {**world.bench.environment, ENCRYPTION_VARIABLE: named}
    proxy.demands = headers
    proxy.denied.clear()
    try:
        options = EngineOptions(environment=environment)
        with Engine(options, endpoint_url=proxy.endpoint_url) as engine:
            yield engine
    finally:
        proxy.demands = {}


def by_command(world: FaultWorld, named: str, *arguments: str) -> Any:
    environment = {**world.bench.environment, ENCRYPTION_VARIABLE: named}
    url = world.bench.proxy.endpoint_url
    return compactor(*arguments, "--endpoint-url", url, environment=environment)


def test_a_run_without_the_header_is_denied_in_one_line(world: FaultWorld) -> None:
    world.seed(partitions(1, seed=1))
    with demanding(world, AES, "none") as engine:
        result = world.run(engine=engine)
    assert result.status == "FAILED"
    assert "AccessDenied" in message_of(result.cause)
    assert world.bench.proxy.denied


@pytest.mark.parametrize(("headers", "named"), [(AES, "AES256"), (KMS, KEY)])
def test_a_run_its_clean_up_and_its_report_name_the_encryption(
    make_world: Any, headers: Mapping[str, str], named: str
) -> None:
    world = make_world(f"run and clean-up {named}")
    world.seed([*partitions(2, seed=2), *large_partition(seed=2)])
    with demanding(world, headers, named) as engine:
        for _ in range(2):
            result = world.run(engine=engine, delete_after="0d")
            assert result.status == "SUCCEEDED", result.cause
            time.sleep(1.1)
        assert world.bench.proxy.denied == []
    world.must_be_complete()
    assert world.keys(world.source, "logs/") == []
    state = world.keys(world.lake, "_compactor/")
    for name in ("/report.json", "/clean-up.json"):
        assert any(key.endswith(name) for key in state), name


def test_each_bucket_has_its_own_encryption(world: FaultWorld) -> None:
    world.seed(partitions(1, seed=3))
    with demanding(world, KMS, f"AES256,{world.lake}={KEY}") as engine:
        result = world.run(engine=engine)
        assert result.status == "SUCCEEDED", result.cause
        assert world.bench.proxy.denied == []


def test_restored_objects_name_the_encryption(world: FaultWorld) -> None:
    world.seed([*partitions(1, seed=4), *large_partition(seed=4)])
    with demanding(world, AES, "AES256") as engine:
        assert world.run(engine=engine).status == "SUCCEEDED"
        to = f"s3://{world.source}/restored/"
        places = ("restore", world.places[1], "--all", "--output", to)
        denied = by_command(world, "none", *places)
        assert denied.returncode != 0
        assert "s3:PutObject is needed" in denied.stderr
        world.bench.proxy.denied.clear()
        ended = by_command(world, "AES256", *places)
        assert ended.returncode == 0, ended.stderr
        assert world.bench.proxy.denied == []
    assert len(world.keys(world.source, "restored/")) == len(world.sources)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_is_published_with_the_encryption(
    make_world: Any, kind: str, tmp_path: Path
) -> None:
    world = make_world(f"table {kind}")
    world.seed([(f"day={n}/a.json", b'{"id": "a%d"}\n' % n) for n in range(2)])
    place = f"s3://{world.lake}/compacted"
    table = f"delta:{place}/" if kind == "delta" else f"sql:sqlite:///{tmp_path}/c.db#lake.t"
    fields: dict[str, Any] = {"table": table, "formats": "json_lines", "output_format": "parquet"}
    if kind == "delta":
        fields["s3_destination_uri"] = f"{place}/_c/"
    with demanding(world, AES, "AES256") as engine:
        result = world.run(engine=engine, **fields)
        assert result.status == "SUCCEEDED", result.cause
        assert world.bench.proxy.denied == []
    logged = "/_delta_log/" if kind == "delta" else "metadata.json"
    assert any(logged in key for key in world.keys(world.lake, ""))


def test_a_value_that_is_not_accepted_is_named(world: FaultWorld) -> None:
    ended = by_command(world, "AES-256", "run", *world.places, "--json")
    assert ended.returncode != 0
    shown = ended.stderr + ended.stdout
    assert "COMPACTOR_ENCRYPTION: 'AES-256' is not accepted; expected none, AES256" in shown
    assert "Traceback" not in shown
