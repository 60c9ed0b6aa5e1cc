"""Every mistake in deployment.toml is one clear error, before anything is made."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cdk.config import Deployment, load, read
from compactor.errors import InvalidInput
from tests.infrastructure.configurations import CONFIGURATIONS, VPC

_KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
_URIS = {"s3_source_uri": "s3://app-logs/raw/", "s3_destination_uri": "s3://lake/compacted/"}
_KEYED = {"table": "glue:a.b", "upsert_key": ["id"]}
_CLUSTER = {"kind": "cluster", "cluster_id": "j-2AXX"}
_TABLES: Mapping[str, Any] = CONFIGURATIONS["maintenance"]["maintenance"]
_JOB = _TABLES["job"]


def _job(**fields: Any) -> dict[str, Any]:
    return {"job": {**_URIS, **fields}}


def _maintenance(**fields: Any) -> dict[str, Any]:
    return {"maintenance": {**_TABLES, **fields}}


_MISTAKES: list[tuple[Mapping[str, Any], str, str]] = [
    # What lifecycle rules may say; S3 and CDK check none of it at synth.
    ({"lifecycle": {"standard_ia": 7}}, "lifecycle", "standard_ia of at least 30"),
    ({"lifecycle": {"standard_ia": 0}}, "lifecycle", "days from 1"),
    ({"lifecycle": {"standard_ia": 60, "glacier_ir": 50}}, "lifecycle", "glacier_ir of at least 9"),
    ({"lifecycle": {"glacier_ir": 90, "expire": 90}}, "lifecycle", "expire of more than"),
    ({"lifecycle": {"glacier_instant": 90}}, "lifecycle", "glacier_ir"),
    ({"lifecycle": {"standard_ia": "soon"}}, "lifecycle", "days from 1"),
    ({**_job(), "lifecycle": {"standard_ia": 45}}, "lifecycle", "does not make"),
    (
        {"job": {"depth": 1, "reader_table": "glue:a.b"}, "lifecycle": {"glacier": 90}},
        "lifecycle",
        "no glacier with a table",
    ),
    (
        {"job": {"table": "glue:a.b"}, "lifecycle": {"expire": 400}},
        "lifecycle",
        "no expire with a table",
    ),
    # Where things are.
    (_job(s3_destination_uri="s3://app-logs/raw/x/"), "s3_destination_uri", "neither contains"),
    (_job(s3_source_uri="https://lake/raw/"), "s3_source_uri", "S3 URI"),
    (_job(s3_state_uri="s3://lake/compacted/state/"), "s3_state_uri", "neither contains"),
    ({"vpc": "vpc-0123456789abcdef0"}, "vpc", "subnet_ids and security_group_ids"),
    ({"vpc": {"subnet_ids": ["subnet-01"]}}, "vpc", "security_group_ids"),
    ({"vpc": {**VPC, "subnet_ids": []}}, "vpc", "at most 16 and 5"),
    ({"vpc": {**VPC, "security_group_ids": ["sg-01"]}}, "vpc", "sg-0123456789abcdef0"),
    ({"kms_key": "alias/lake"}, "kms_key", "ARN of a KMS key"),
    ({"kms_key": {"source": "alias/lake"}}, "kms_key", "ARN of a KMS key"),
    ({"kms_key": {"target": _KEY}}, "kms_key.target", "destination, source, table"),
    # Names.
    ({"lifecycles": {}}, "lifecycles", "did you mean lifecycle?"),
    ({"s3_source_uri": "s3://a/b/"}, "s3_source_uri", "s3_source_uri in [job]"),
    ({"something": 1}, "something", "one of name, standalone"),
    (_job(source_uri="s3://a/b/"), "source_uri", "no such field"),
    ({"name": "Compactor"}, "name", "small letters"),
    ({"name": 7}, "name", "small letters"),
    # When.
    ({"schedule": "daily"}, "schedule", "cron("),
    ({"schedule": "cron(0 3 * * * *)"}, "schedule", "cron("),
    ({"schedule": "rate(1 hours)"}, "schedule", "rate("),
    ({"schedule": True}, "schedule", "in UTC"),
    (_job(date_format="%Y/%q"), "date_format", "%Y"),
    # What runs.
    ({"standalone": "yes"}, "standalone", "true or false"),
    ({"standalone": True, "events": {}}, "events", "standalone = true"),
    ({"standalone": True, "job": {"table": "glue:a.b"}}, "job.table", "standalone = true"),
    ({"worker_memory_mb": 20_000}, "worker_memory_mb", "10,240"),
    (_job(target_bytes=1_000), "target_bytes", "5,242,880"),
    (_job(delete_after="yes"), "delete_after", "30d"),
    ({"encryption": "none at all"}, "encryption", '"aws:kms"'),
    # Spark.
    ({"spark": {"kind": "glue"}}, "spark.kind", '"serverless"'),
    ({"spark": {"kind": "cluster"}}, "spark.cluster_id", "such as j-"),
    ({"spark": {"cluster_id": "j-2AXX"}}, "spark.cluster_id", 'with kind "cluster"'),
    ({"spark": {"max_vcpus": 2}}, "spark.max_vcpus", "4,000"),
    ({"spark": {"python": "3.9"}}, "spark.python", "3.11"),
    ({"spark": {"jars": "newest"}}, "spark.jars", '"bundled", "release", or a list'),
    ({"spark": {"jars": ["s3://b/*.jar"]}}, "spark.jars", "each s3://bucket/key.jar"),
    ({"spark": {"jars": ["/a'b.jar"]}}, "spark.jars", "/path/name.jar"),
    (_job(spark_engine="none"), "job.spark_engine", "[spark] kind"),
    ({**_job(**_KEYED), "spark": {"kind": "none"}}, "spark_engine", "Spark"),
    # Events.
    ({"events": {"seconds": 30}}, "events.seconds", "60"),
    ({"events": {"second": 60}}, "events.second", "did you mean seconds?"),
    ({"events": {}, **_job(listing="list")}, "job.listing", "[events]"),
    ({"events": {}, **_job(date_format="%Y/%m/%d", window="2d")}, "window", "events"),
    # Tables.
    (_job(table="sql:sqlite:///x#lake.events"), "job.table", "glue:"),
    ({"table_location_uri": "s3://tables/x/"}, "table_location_uri", "without job.table"),
    (
        {**_job(table="glue:a.b"), "table_location_uri": "s3://lake/"},
        "table_location_uri",
        "neither contains the destination",
    ),
    (_maintenance(locations=[]), "maintenance.locations", "bronze"),
    (_maintenance(locations=["s3://lake/"]), "maintenance.locations", "state of maintenance"),
    (_maintenance(glue_optimizers=["bronze"]), "maintenance.glue_optimizers", "glue:bronze"),
    (_maintenance(kms_key="alias/x"), "maintenance.kms_key", "ARN"),
    (_maintenance(schedule="daily"), "maintenance.schedule", "cron("),
    (_maintenance(job={**_JOB, "glue_tables": "all"}), "glue_tables", "a list of patterns"),
    (_maintenance(job={"glue_tables": ["a.*"]}), "s3_state_uri", "s3://bucket/prefix/"),
    ({"maintenance": {"locations": ["s3://t/"]}}, "maintenance", "job"),
    (
        _maintenance(job={**_JOB, "tables": ["sql:postgresql://h/d#a.b"]}),
        "spark.jars",
        "JDBC driver",
    ),
    # Operation.
    ({"alarm_email": "operator"}, "alarm_email", "e-mail"),
]


@pytest.mark.parametrize(("document", "field", "accepted"), _MISTAKES, ids=str)
def test_a_mistake_names_its_key_and_what_is_accepted(
    document: Mapping[str, Any], field: str, accepted: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(document)

    line = str(caught.value)
    assert line.startswith(f"{field}: ")
    assert accepted in line
    assert "\n" not in line


@pytest.mark.parametrize("key", [one for one in Deployment.__struct_fields__ if one != "job"])
def test_every_key_refuses_what_it_is_not(key: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        read({key: {"neither": "text nor number"}})


def test_without_a_file_buckets_are_made_and_spark_is_serverless() -> None:
    deployment = read({})

    assert (deployment.makes_source, deployment.makes_destination) == (True, True)
    assert deployment.run.spark_engine == "emr_serverless"
    assert not deployment.deletes


@pytest.mark.parametrize(
    ("document", "engine"),
    [
        ({"spark": _CLUSTER}, "j-2AXX"),
        ({"spark": {"kind": "none"}}, "none"),
        ({"standalone": True}, "none"),
        ({"job": {"engine": "worker"}}, "none"),
    ],
)
def test_where_spark_runs_follows_from_the_file(document: dict[str, Any], engine: str) -> None:
    assert read(document).run.spark_engine == engine


def test_the_input_of_runs_has_what_differs_from_the_defaults() -> None:
    job = {"date_format": "%Y/%m/%d", "window": "2d", "settle_seconds": 0, "delete_after": None}
    found = read({**_job(**job), "spark": {"kind": "none"}}).run_input

    del job["delete_after"]
    assert found == {**_URIS, **job, "spark_engine": "none"}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^config: .*no-such.toml"):
        load(tmp_path / "no-such.toml")


def test_the_manual_shows_the_whole_file_and_every_key_of_it(
    repo_root: Path, tmp_path: Path
) -> None:
    text = (repo_root / "docs" / "deployment.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(# deployment\.toml\n.*?)```", text, re.DOTALL)
    path = tmp_path / "deployment.toml"
    path.write_text(example, encoding="utf-8")

    deployment = load(path)

    shown = {
        name for name, _ in _keys(tomllib.loads(re.sub(r"(?m)^# (?=[a-z_]+ = )", "", example)))
    }
    known = {name for name, _ in _keys(msgspec.to_builtins(Deployment())) if "." not in name}
    assert known <= {name.partition(".")[0] for name in shown}
    assert deployment.run.s3_source_uri.startswith("s3://")


def _keys(document: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found = []
    for name, value in document.items():
        found.append((above + name, value))
        if isinstance(value, Mapping):
            found += _keys(value, f"{above}{name}.")
    return found
