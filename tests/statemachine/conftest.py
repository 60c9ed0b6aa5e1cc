"""One embedded S3 for all tests here, and the workflow run on fake handlers."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compactor_local.embedded import EmbeddedS3, embedded_s3
from compactor_local.engine import Engine, EngineOptions, WorkflowProgress, WorkflowResult

FAKES = {
    name: f"tests.statemachine.fake_handlers.{name}"
    for name in ("discover", "compact_partition", "plan_clean_up", "clean_up", "report")
}
BUCKET = "workflow-tests"
_names = itertools.count()


@pytest.fixture(scope="session")
def s3() -> Iterator[EmbeddedS3]:
    with embedded_s3() as running:
        running.create_bucket(BUCKET)
        yield running


@pytest.fixture(scope="session")
def engine(s3: EmbeddedS3) -> Iterator[Engine]:
    options = EngineOptions(wait_scale=0, environment=s3.environment)
    with Engine(options, endpoint_url=s3.endpoint_url) as running:
        yield running


@dataclass(frozen=True)
class Ran:
    """A finished execution, and what its handlers wrote down."""

    result: WorkflowResult
    calls: list[dict[str, Any]]
    progress: list[WorkflowProgress]

    def paths(self, function: str) -> list[str]:
        return [call["path"] for call in self.calls if call["function"] == function]

    def steps(self, function: str, path: str = "") -> list[str]:
        wanted = (function, path)
        return [call["step"] for call in self.calls if (call["function"], call["path"]) == wanted]


Run = Callable[..., Ran]


@pytest.fixture
def run(engine: Engine, tmp_path: Path) -> Run:
    """``run(partitions=…, trouble={…})``: the real definition on the fake handlers."""

    def start(*, workers: int = 2, options: Mapping[str, Any] | None = None, **order: Any) -> Ran:
        (tmp_path / "calls").touch()
        progress: list[WorkflowProgress] = []
        result = engine.run(
            {"bucket": BUCKET, "scratch": str(tmp_path), **order},
            run_name=f"run-{next(_names)}",
            workers=workers,
            on_progress=progress.append,
            handler_modules=FAKES,
            options=dataclasses.replace(EngineOptions(wait_scale=0), **(options or {})),
        )
        lines = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
        return Ran(result, [json.loads(line) for line in lines], progress)

    return start
