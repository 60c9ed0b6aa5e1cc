"""``compactor run`` by processes of its own, with partitions for them and for Spark in one run."""

from __future__ import annotations

import json
import time

import pytest

from compactor.s3.store import make_client
from compactor.settings.settings import Settings
from compactor_cli.commands import main
from compactor_cli.machine.spark_submit import SparkHere
from compactor_local.embedded import EmbeddedS3, SeedObject
from tests.support.audit import Places, audit
from tests.support.embedded import find_embedded

pytestmark = pytest.mark.slow


def test_one_report_covers_small_and_oversized_partitions(
    spark_here: SparkHere,
    s3: EmbeddedS3,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    find_embedded(s3, monkeypatch)
    arrived = time.time() - 9 * 86_400
    s3.create_bucket("here-lake")
    s3.seed(
        "here-source",
        (
            SeedObject(f"logs/{path}{n:03}.json", b'{"n":%d}\n' % n, arrived)
            for path, count in (("small/", 3), ("large/", 20))
            for n in range(count)
        ),
    )
    places = ("s3://here-source/logs/", "s3://here-lake/compacted/")
    words = [
        "--depth",
        "1",
        "--lambda-max-bytes",
        "60",
        "--workers",
        "1",
        "--json",
    ]
    code = main(["run", *places, "--endpoint-url", s3.endpoint_url, *words])
    out, err = capsys.readouterr()
    # Where Spark takes longer than ten seconds, lines of progress are written meanwhile.
    assert (code, [one for one in err.splitlines() if not one.startswith("compacting: ")]) == (
        0,
        [],
    )
    summary = json.loads(out)["summary"]
    assert summary["spark"] == ["large/"]
    assert (summary["partitions"], summary["objects_before"]) == (2, 23)
    assert (summary["objects_after"], summary["records"]) == (2, 23)
    assert 0 < summary["cost"]["vcpu_hours"] < 1
    assert summary["cost"]["by"]["Spark"] > 0
    given = {"s3_source_uri": places[0], "s3_destination_uri": places[1]}
    settings = Settings.from_input(given)
    where = Places(settings.source.root, settings.destination, settings.state)
    proof = audit(where, make_client(s3.endpoint_url))
    assert proof.holds, proof.findings
