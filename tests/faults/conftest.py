"""A server, the proxy before it, and an engine whose workers know only the proxy."""

from __future__ import annotations

import contextlib
import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from compactor_local.embedded import embedded_s3
from compactor_local.engine import Engine, EngineOptions
from tests.faults.fault_world import Bench, FaultWorld
from tests.faults.figures import Figures
from tests.faults.processes import kill_worker
from tests.faults.worker_clock import WorkerClock
from tests.support.fault_proxy import fault_proxy
from tests.support.faults import Fault
from tests.support.real_servers import Unavailable, real_server

SERVER = "versitygw"


@pytest.fixture(scope="session")
def figures() -> Iterator[Figures]:
    """Sums of the session; S3_COMPACTOR_PROOF_DIR names the directory they are left in."""
    counted = Figures()
    yield counted
    if directory := os.environ.get("S3_COMPACTOR_PROOF_DIR"):
        counted.write(Path(directory), os.environ.get("PYTEST_XDIST_WORKER", "one"))


@pytest.fixture(scope="session")
def worker_clock(tmp_path_factory: pytest.TempPathFactory) -> WorkerClock:
    return WorkerClock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="session")
def bench(figures: Figures, worker_clock: WorkerClock) -> Iterator[Bench]:
    acts = {
        Fault.KILLED_BEFORE: kill_worker,
        Fault.KILLED_AFTER: kill_worker,
        Fault.CLOCK_JUMP: worker_clock.jump,
    }
    with contextlib.ExitStack() as running:
        endpoint_url, environment, real = _server(running)
        proxy = running.enter_context(fault_proxy(endpoint_url, acts))
        options = EngineOptions(environment=environment)
        engine = running.enter_context(Engine(options, endpoint_url=proxy.endpoint_url))
        yield Bench(engine, proxy, endpoint_url, environment, figures, checks_signatures=real)


def _server(running: contextlib.ExitStack) -> tuple[str, Mapping[str, str], bool]:
    """A real server, which checks signatures and checksums; else the embedded one.

    Returns:
        Its endpoint, the environment of those who use it, and whether it is a real one.
    """
    try:
        real = running.enter_context(real_server(SERVER))
    except Unavailable as reason:
        warnings.warn(f"faults before the embedded S3 only: {reason}", stacklevel=1)
        embedded = running.enter_context(embedded_s3())
        return embedded.endpoint_url, embedded.environment, False
    keys = {"AWS_ACCESS_KEY_ID": real.access_key, "AWS_SECRET_ACCESS_KEY": real.secret_key}
    return real.endpoint_url, keys, True


@pytest.fixture(scope="module")
def make_world(bench: Bench) -> Iterator[Callable[[str], FaultWorld]]:
    """Makes worlds that live as long as the tests of a module.

    Their names hang on the test alone: which request meets a fault is drawn from its path.
    """
    with contextlib.ExitStack() as ending:

        def make(test: str) -> FaultWorld:
            made = FaultWorld(bench, f"faults-{zlib.crc32(test.encode()):08x}")
            # The server would wait for connections that nobody uses any more.
            ending.callback(made.client.close)
            return made

        yield make


@pytest.fixture
def world(make_world: Callable[[str], FaultWorld], request: pytest.FixtureRequest) -> FaultWorld:
    return make_world(request.node.name)
