"""What every test stands on: an environment without credentials or network, and real data."""

from __future__ import annotations

import functools
import gc
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.loaders import create_loader
from hypothesis import HealthCheck, settings

from tests.support import java
from tests.support.selection import marks
from tests.support.slow import SLOW

REPO_ROOT = Path(__file__).resolve().parent.parent

# A port nobody listens on: whatever a test sends anywhere but to this machine fails at once.
_NOWHERE = "http://127.0.0.1:9"
_LOOPBACK = "127.0.0.1,localhost,::1"

_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "HTTP_PROXY": _NOWHERE,
    "HTTPS_PROXY": _NOWHERE,
    "http_proxy": _NOWHERE,
    "https_proxy": _NOWHERE,
    "NO_PROXY": _LOOPBACK,
    "no_proxy": _LOOPBACK,
    **java.ENVIRONMENT,
}
# Through the environment, because the processes of pytest-xdist inherit what is set here.
_PROXIES_BEFORE = "COMPACTOR_TEST_PROXIES"
_LEFT_OUT = (
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_ROLE_ARN",
    "AWS_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "ALL_PROXY",
)

# The same examples on every run, so that a red build is red again; HYPOTHESIS_PROFILE=dev looks
# for new ones. No deadline: the machine is shared, and time is not what these tests are about.
settings.register_profile(
    "ci",
    max_examples=50,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("dev", max_examples=500, deadline=None)


def pytest_configure() -> None:
    """Prepare the environment before any test module, and so any handler, is imported."""
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
    for name in [*os.environ]:
        if name in _LEFT_OUT or name.startswith("AWS_ENDPOINT_URL"):
            del os.environ[name]
    proxies = {name: os.environ.get(name, "") for name in _ENVIRONMENT if "proxy" in name.lower()}
    os.environ.setdefault(_PROXIES_BEFORE, json.dumps(proxies))
    os.environ.update(_ENVIRONMENT)
    # Each client would read the description of its service anew, which takes it a tenth of a
    # second; the tests make thousands of clients.
    shared = functools.cache(create_loader)
    pytest.MonkeyPatch().setattr(botocore.session, "create_loader", shared)
    # A job started in the background of a script ignores interrupts, and so would the programs
    # whose answer to an interrupt is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """No garbage is looked for among modules and tests: all of them stay to the end.

    A million objects, through which each full collection would go, half a second to two of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test-fast` does not import modules of which it runs nothing."""
    name = collection_path.stem.removeprefix("test_")
    is_slow = name in SLOW and collection_path.parent.name == "unit"
    return True if is_slow and config.option.markexpr == "fast" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark which command runs a test, before marks are selected."""
    tests = REPO_ROOT / "tests"
    for item in items:
        node_id = item.nodeid.removeprefix("tests/")
        for mark in sorted(marks(item.path.relative_to(tests), node_id)):
            if mark != "fast" or item.get_closest_marker("slow") is None:
                item.add_marker(mark)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The scheduler of ``--dist loadfile``; that of pytest-xdist for every other way."""
    from tests.support.balance import Balanced

    return Balanced(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def _no_session_of_another_test() -> Iterator[None]:
    """boto3 keeps one session, with the credentials that its first client found."""
    yield
    boto3 = sys.modules.get("boto3")
    session = boto3.DEFAULT_SESSION if boto3 is not None else None
    if session is not None:
        found = session.get_credentials()
        if found is None or found.access_key != _ENVIRONMENT["AWS_ACCESS_KEY_ID"]:
            boto3.DEFAULT_SESSION = None  # type: ignore[union-attr]  # it is there


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The directory that holds pyproject.toml."""
    return REPO_ROOT


@pytest.fixture(scope="session")
def registry_environment() -> dict[str, str]:
    """The environment for the one thing that is on no machine of ours: the package registry.

    An empty value means: remove the variable.
    """
    before: dict[str, str] = json.loads(os.environ[_PROXIES_BEFORE])
    return before


@pytest.fixture(scope="session")
def real_cloudtrail() -> Path:
    """A directory of 44 real CloudTrail objects (gzip, 2,611 records), beside the repository."""
    directory = REPO_ROOT.parent / "shared" / "data" / "cloudtrail"
    if not directory.is_dir():
        pytest.skip("the real CloudTrail objects are not beside this repository")
    return directory


@pytest.fixture(scope="session")
def proof_directory() -> Path | None:
    """Where tests leave the figures that ``make proof`` prints; None in other runs."""
    given = os.environ.get("S3_COMPACTOR_PROOF_DIR")
    return Path(given) if given else None
