"""Every case on every store: in memory, and on servers through both ways to make requests.

A case that a server is known to fail (:mod:`tests.support.server_differences`) must fail there.
``pytest --collect-only -q tests/contract`` lists cases on real servers as ``[versitygw-botocore]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.exceptions import ClientError, FlexibleChecksumError

from compactor.errors import CompactorError
from compactor.s3.retries import Patience
from compactor.s3.store import S3Store, make_client
from tests.contract.benches import Bench, InMemory, OnMoto, OnServer
from tests.support.moto_server import moto_server
from tests.support.real_servers import REAL_SERVERS, Unavailable, real_server
from tests.support.s3_requests import NoTime
from tests.support.server_differences import DIFFERENCES, Difference

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_WAYS = {"botocore": False, "libcurl": True}
_IN_MEMORY = "memory"
_BENCHES = [_IN_MEMORY, *(f"{name}-{way}" for name in ("moto", *REAL_SERVERS) for way in _WAYS)]
# A server may have to be built first: that time is not the test's.
_CASE_SECONDS = 300
_EXCEPTIONS: Mapping[str, type[BaseException]] = {
    kind.__name__: kind
    for kind in (
        pytest.fail.Exception,
        AssertionError,
        ClientError,
        FlexibleChecksumError,
        *CompactorError.__subclasses__(),
    )
}
_numbers = count()


class Servers:
    """Real servers, each started when a case first wants it."""

    def __init__(self, running: ExitStack) -> None:
        self._running = running
        self._urls: dict[str, str] = {}
        self._reasons: dict[str, str] = {}

    def url(self, name: str) -> str:
        """Where it listens; skips the test where it cannot be had."""
        if name in self._reasons:
            pytest.skip(self._reasons[name])
        if name not in self._urls:
            try:
                server = self._running.enter_context(real_server(name))
            except Unavailable as reason:
                self._reasons[name] = f"{name}: {reason}"
                return self.url(name)
            self._urls[name] = server.endpoint_url
        return self._urls[name]


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with ExitStack() as running:
        yield Servers(running)


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    """A server that this module has to itself."""
    with moto_server() as url:
        yield url


@pytest.fixture(scope="session")
def clients() -> dict[str, tuple[S3Client, S3Client]]:
    """By endpoint: the client that stores use, and one that no store has had in its hands."""
    return {}


@pytest.fixture(params=_BENCHES)
def bench(request: pytest.FixtureRequest, clients: dict[str, tuple[S3Client, S3Client]]) -> Bench:
    """Each store in turn, with an empty bucket."""
    if request.param == _IN_MEMORY:
        return InMemory()
    name, way = request.param.split("-")
    on_moto = name == "moto"
    url = (
        request.getfixturevalue("moto_url")
        if on_moto
        else request.getfixturevalue("servers").url(name)
    )
    if url not in clients:
        clients[url] = make_client(url, connections=8), boto3.client("s3", endpoint_url=url)
    ours, plain = clients[url]
    bucket = f"bucket-{next(_numbers)}"
    plain.create_bucket(Bucket=bucket)
    # What a server cannot do does not become better by waiting.
    no_time = NoTime()
    patience = Patience(clock=no_time.clock, pause=no_time.pause)
    store = S3Store(ours, threads=4, libcurl=_WAYS[way], patience=patience)
    return (OnMoto if on_moto else OnServer)(store, ours, plain, bucket)


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Cases that a server is known to fail must fail there, and in no other way."""
    for item in items:
        if isinstance(item, pytest.Function) and (server := _server_of(item)):
            item.add_marker(pytest.mark.timeout(_CASE_SECONDS, func_only=True))
            for one in DIFFERENCES:
                if one.server == server and _names_of(item) & {*one.cases}:
                    item.add_marker(_must_fail(one))


def _must_fail(one: Difference) -> pytest.MarkDecorator:
    raises = tuple(_EXCEPTIONS[name] for name in one.raises)
    return pytest.mark.xfail(strict=True, raises=raises, reason=f"{one.server}: {one.instead}")


def _server_of(item: pytest.Function) -> str:
    """Empty for cases on no server."""
    bench_of = item.callspec.params.get("bench", _IN_MEMORY) if hasattr(item, "callspec") else ""
    name: str = str(bench_of).partition("-")[0]
    return "" if name == _IN_MEMORY else name


def _names_of(item: pytest.Function) -> set[str]:
    """The test's name, alone and with its parameters in brackets, all but the server."""
    bench = str(item.callspec.params["bench"])
    parameters = "".join(item.callspec.id.split(bench)).strip("-")
    way = bench.partition("-")[2]
    name = item.originalname
    return {name, f"{name}[{parameters}]", f"{name}[{way}-{parameters}]"}
