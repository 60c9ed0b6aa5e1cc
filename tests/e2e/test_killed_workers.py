"""Real worker processes on a real server, killed with SIGKILL at each step of the write order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from compactor.s3.store import make_client
from tests.conftest import REPO_ROOT
from tests.support.real_servers import Unavailable, real_server
from tests.support.world import World, records_in

# Where a worker dies: before or after the nth call of a method of the store.
STEPS = {
    "1, while reading": ("after", "read_sources", "2"),
    "2, some parts stored": ("after", "upload_part", "2"),
    "3, verified": ("before", "create", "2"),
    "4, committed": ("after", "create", "2"),
    "5, published": ("after", "complete_upload", "2"),
    "6, clean-up half way": ("after", "delete_sources", "2"),
}


@pytest.fixture(scope="module")
def strict_s3() -> Iterator[str]:
    """The endpoint of a server on which one of two conditional writes wins."""
    try:
        with real_server("versitygw") as server:
            yield server.endpoint_url
    except Unavailable as reason:
        pytest.skip(str(reason))


class RealWorld:
    """The small world of the simulated tests, on a server, with workers of flesh and blood."""

    def __init__(self, endpoint: str, **given: object) -> None:
        self.endpoint = endpoint
        self.client = make_client(self.endpoint)
        self.model = World(settle_seconds=0, **given)
        self.model.add_variety()
        self.runs = 0
        for bucket in ("source", "lake"):
            self._empty(bucket)
        for key, body in self.model.store.contents("source").items():
            self.client.put_object(Bucket="source", Key=key, Body=body)

    def _empty(self, bucket: str) -> None:
        with suppress(self.client.exceptions.BucketAlreadyOwnedByYou):
            self.client.create_bucket(Bucket=bucket)
        for key in self.bodies(bucket):
            self.client.delete_object(Bucket=bucket, Key=key)
        self.drop_uploads(bucket)

    def drop_uploads(self, bucket: str = "lake") -> None:
        """What AbortIncompleteMultipartUpload of a lifecycle rule does."""
        for upload in self.client.list_multipart_uploads(Bucket=bucket).get("Uploads", ()):
            self.client.abort_multipart_upload(
                Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]
            )

    def bodies(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        found = self.client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ())
        return {
            entry["Key"]: self.client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
            for entry in found
        }

    def start(self, *death: str) -> subprocess.Popen[bytes]:
        self.runs += 1
        given = json.dumps(self.model.settings.to_dict())
        command = [sys.executable, "-m", "tests.support.killed_worker"]
        path = os.pathsep.join([str(REPO_ROOT), str(REPO_ROOT / "functions")])
        return subprocess.Popen(
            [*command, self.endpoint, f"run-{self.runs}", given, *death],
            env={**os.environ, "PYTHONPATH": path},
            cwd=REPO_ROOT,
        )

    def check(self, *, finished: bool = False) -> None:
        readable: Counter[int] = Counter()
        for body in self.bodies("lake", "compacted/").values():
            readable += records_in(body)
        sources: Counter[int] = Counter()
        for body in self.bodies("source").values():
            sources += records_in(body)
        assert not {n for n, count in readable.items() if count > 1}, "doubled"
        assert not self.model.records - set(readable) - set(sources), "lost"
        if finished:
            assert set(readable) == self.model.records


@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_at_any_step_is_made_good_by_the_next(strict_s3, step):
    cleaning = {"delete_after": "0d"} if "clean-up" in step else {}
    world = RealWorld(strict_s3, **cleaning)
    assert world.start(*STEPS[step]).wait(120) == -signal.SIGKILL
    world.check()
    assert world.start().wait(120) == 0
    world.check(finished=True)
    outputs = world.bodies("lake", "compacted/")
    assert world.start().wait(120) == 0
    assert world.bodies("lake", "compacted/") == outputs
    if cleaning:
        assert [key.rsplit("/", 1)[-1] for key in world.bodies("source")] == ["g.log.gz"]


def test_a_commit_whose_upload_was_dropped_is_built_again_by_the_next_worker(strict_s3):
    world = RealWorld(strict_s3)
    assert world.start(*STEPS["4, committed"]).wait(120) == -signal.SIGKILL
    world.drop_uploads()
    world.check()
    assert world.start().wait(120) == 0
    world.check(finished=True)


def test_concurrent_workers_over_one_partition_neither_lose_nor_double(strict_s3):
    world = RealWorld(strict_s3)
    workers = [world.start() for _ in range(4)]
    while any(worker.poll() is None for worker in workers):
        world.check()
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0]
    world.check(finished=True)
