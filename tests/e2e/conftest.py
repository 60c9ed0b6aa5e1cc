"""One embedded S3 for the end-to-end tests, and the real workflow on it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from compactor_cli import console
from compactor_local.embedded import EmbeddedS3, SeedObject, embedded_s3
from compactor_local.engine import Engine, EngineOptions, WorkflowResult

WORKERS = 2
_names = itertools.count(1)


@pytest.fixture(scope="session")
def s3() -> Iterator[EmbeddedS3]:
    with embedded_s3() as running:
        yield running


@pytest.fixture(scope="session")
def engine(s3: EmbeddedS3) -> Iterator[Engine]:
    """One for all: it takes two seconds to start, and each execution has processes of its own."""
    options = EngineOptions(environment=s3.environment, wait_scale=0.1)
    with Engine(options, endpoint_url=s3.endpoint_url) as running:
        yield running


class Workflow:
    """Sources in a bucket of their own, and the workflow over them."""

    def __init__(self, s3: EmbeddedS3, engine: Engine) -> None:
        self.s3 = s3
        self._engine = engine
        self.name = f"e2e-{next(_names)}"
        self.source = f"{self.name}-source"
        self.lake = f"{self.name}-lake"
        s3.create_bucket(self.source)
        s3.create_bucket(self.lake)

    def seed(self, objects: dict[str, bytes]) -> None:
        long_ago = time.time() - 7 * 86_400
        s3_objects = (SeedObject(key, body, long_ago) for key, body in objects.items())
        self.s3.seed(self.source, s3_objects)

    def run(self, **fields: object) -> WorkflowResult:
        given = {
            "s3_source_uri": f"s3://{self.source}/logs/",
            "s3_destination_uri": f"s3://{self.lake}/compacted/",
            **fields,
        }
        return self._engine.run(given, run_name=f"run-{next(_names)}", workers=WORKERS)


@pytest.fixture
def workflow(s3: EmbeddedS3, engine: Engine) -> Workflow:
    return Workflow(s3, engine)


@pytest.fixture(autouse=True)
def _no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy a command takes long enough to tell how far it is."""
    monkeypatch.setattr(console, "_LINE_SECONDS", 3_600.0)
