"""``compactor run`` over what events named, with rows by the real Spark: taken, written, marked."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from compactor.aws.registry import DynamoRegistry
from compactor.aws.registry_rows import create_table
from compactor.registry.registering import register
from compactor.registry.streams import parse_streams
from compactor.s3.store import make_client
from compactor_cli.commands import main
from compactor_cli.machine.spark_submit import SparkHere
from compactor_local.embedded import EmbeddedS3, SeedObject
from tests.support.dynamodb import client_at
from tests.support.embedded import find_embedded
from tests.support.event_world import AT_ONCE
from tests.support.moto_server import moto_server
from tests.support.progress_lines import without_progress
from tests.support.s3_events import notification

pytestmark = pytest.mark.slow
PLACES = ("s3://told-source/logs/", "s3://told-lake/compacted/")


def test_rows_are_made_of_what_events_named_and_marked(
    spark_here: SparkHere,
    s3: EmbeddedS3,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    find_embedded(s3, monkeypatch)
    arrived = time.time() - 9 * 86_400
    s3.create_bucket("told-lake")
    objects = [SeedObject(f"logs/a/{n}.json", b'{"n":%d}\n' % n, arrived) for n in range(4)]
    s3.seed("told-source", objects)
    client = make_client(s3.endpoint_url)
    with moto_server() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        create_table(client_at(url), "told")
        registry = DynamoRegistry("told")
        given = {"s3_source_uri": PLACES[0], "s3_destination_uri": PLACES[1], "depth": 1, **AT_ONCE}
        streams = parse_streams(json.dumps([{"name": "logs", "input": given}]), "told")
        bodies = []
        for one in objects[:3]:
            etag = client.head_object(Bucket="told-source", Key=one.key)["ETag"].strip('"')
            told: dict[str, Any] = {
                "bucket": "told-source",
                "etag": etag,
                "size": len(one.body),
                "time": arrived,
            }
            bodies.append((one.key, notification(one.key, **told)))
        register(bodies, streams, registry, time.time())
        words = ["--depth", "1", "--listing", "events:told/logs", "--json"]
        words += ["--settle-seconds", "0"]
        words += ["--output-format", "parquet", "--workers", "1", "--engine", "spark"]
        code = main(["run", *PLACES, "--endpoint-url", s3.endpoint_url, *words])
        out, err = capsys.readouterr()
        assert (code, without_progress(err)) == (0, "")
        summary = json.loads(out)["summary"]
        assert (summary["spark"], summary["objects_before"], summary["records"]) == (["a/"], 3, 3)
        found = client_at(url).scan(TableName="told")["Items"]
        states = [one["state"]["S"] for one in found if "etag" in one]
        assert states == ["COMPACTED"] * 3
        assert list(registry.heads("logs")) == []
