"""A real S3 store on a server that answers as the test scripts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compactor.s3.store import S3Store
from tests.support.s3_requests import store_on
from tests.support.scripted_s3 import ScriptedS3, scripted_s3


@pytest.fixture
def s3() -> Iterator[ScriptedS3]:
    with scripted_s3() as script:
        yield script


@pytest.fixture
def store(s3: ScriptedS3) -> S3Store:
    return store_on(s3.url)


@pytest.fixture(params=[True, False], ids=["libcurl", "botocore"])
def reader(s3: ScriptedS3, request: pytest.FixtureRequest) -> S3Store:
    """Both ways to read sources."""
    return store_on(s3.url, libcurl=request.param)
