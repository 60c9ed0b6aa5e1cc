"""What is around the GETs of small sources: credentials, threads, files, the end of a process."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest
from botocore.exceptions import CredentialRetrievalError

from compactor.model import SourceObject
from compactor.s3.curl_handle import Keys
from compactor.s3.routes import Routes
from compactor.s3.store import S3Store, make_client
from tests.conftest import REPO_ROOT
from tests.support.s3_requests import NoTime
from tests.support.scripted_s3 import Answer, ScriptedS3, scripted_s3

SOURCES = [SourceObject("bucket", f"logs/{n}.json", "e-2", 5, 0.0) for n in range(40)]


@pytest.fixture
def s3() -> Iterator[ScriptedS3]:
    with scripted_s3() as script:
        script.always(Answer(200, b"hello", {"ETag": '"e-2"'}))
        yield script


def store_on(s3: ScriptedS3) -> S3Store:
    return S3Store(make_client(s3.url), threads=8, patience=NoTime().patience())


def test_credentials_that_cannot_be_renewed_are_no_error_of_a_kind_of_its_own(
    s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, usual = store_on(s3), Keys("access", "secret")
    given = chain([usual, None, None], repeat(usual))

    def keys(_: Routes) -> Keys:
        found = next(given)
        if found is None:
            raise CredentialRetrievalError(provider="test", error_msg="none now")
        return found

    monkeypatch.setattr(Routes, "keys", keys)
    # The way that asks again asks for them, too.
    assert [body.content for body in store.read_sources(SOURCES)] == [b"hello"] * len(SOURCES)


def test_credentials_that_are_renewed_amid_a_run_sign_what_is_asked_after_it(
    s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, numbers = store_on(s3), iter(range(2**20))
    curl = store._sources._curl
    assert curl is not None
    curl.routes.of("bucket")

    def renewed() -> SimpleNamespace:
        number = next(numbers)
        return SimpleNamespace(access_key=f"A{number}", secret_key="s", token=f"T{number}")

    monkeypatch.setattr(
        curl.routes, "_credentials", SimpleNamespace(get_frozen_credentials=renewed)
    )
    seconds = iter(range(2**20))
    monkeypatch.setattr("compactor.s3.routes.time", SimpleNamespace(time=seconds.__next__))
    assert [body.content for body in store.read_sources(SOURCES)] == [b"hello"] * len(SOURCES)
    signed = [
        (one.headers["authorization"], one.headers["x-amz-security-token"]) for one in s3.asked
    ]
    assert len(set(signed)) == len(SOURCES)
    for by, token in signed:
        assert f"Credential=A{token.removeprefix('T')}/" in by
        assert "x-amz-security-token" in by


@pytest.mark.parametrize(
    ("files", "most"), [(100, 50), (1, 1), (1024, 128), (resource.RLIM_INFINITY, 128)]
)
def test_of_the_files_that_a_process_may_open_reads_take_half(
    s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    limits = SimpleNamespace(
        getrlimit=lambda _: (files, files),
        RLIMIT_NOFILE=resource.RLIMIT_NOFILE,
        RLIM_INFINITY=resource.RLIM_INFINITY,
    )
    monkeypatch.setattr("compactor.s3.base.resource", limits)
    assert S3Store(make_client(s3.url), threads=256).limiter.limit == most


def test_sources_of_no_bytes_say_nothing_of_how_quick_the_store_is(s3: ScriptedS3) -> None:
    store = store_on(s3)
    empty = [SourceObject("bucket", f"logs/{n}", "e-2", 0, 0.0) for n in range(100)]
    assert {body.content for body in store.read_sources(empty)} == {b""}
    assert store.limiter._quickest == float("inf")


@pytest.mark.parametrize(
    ("region", "settings", "host"),
    [
        ("us-east-1", {}, "s3.amazonaws.com"),
        ("eu-west-1", {}, "s3.eu-west-1.amazonaws.com"),
        ("us-gov-west-1", {}, "s3.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", {}, "s3.cn-north-1.amazonaws.com.cn"),
        ("us-east-1", {"AWS_USE_FIPS_ENDPOINT": "true"}, "s3-fips.us-east-1.amazonaws.com"),
        ("us-west-2", {"AWS_USE_FIPS_ENDPOINT": "true"}, "s3-fips.us-west-2.amazonaws.com"),
        (
            "eu-west-1",
            {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
            "s3.dualstack.eu-west-1.amazonaws.com",
        ),
        ("eu-west-1", {"AWS_CONFIG_FILE": "vpc"}, "bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com"),
    ],
)
def test_sources_are_asked_for_where_the_settings_say(
    region: str,
    settings: Mapping[str, str],
    host: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "vpc").write_text(
        f"[default]\nservices=s\n[services s]\ns3=\n endpoint_url=https://{host}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    route = Routes(make_client()).of("bucket")
    assert route is not None
    virtual, by_path = f"https://bucket.{host}/logs/0.json", f"https://{host}/bucket/logs/0.json"
    assert route.url(SOURCES[0].key) == (by_path if "vpce" in host else virtual)
    assert route.site.region == region


_FEW_FILES = """
import resource, sys
from tests.unit.test_gets_surroundings import *
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
wanted = [SourceObject("bucket", f"logs/{n}.json", "e-2", 5, 0.0) for n in range(3_000)]
store = S3Store(make_client(sys.argv[1]), threads=256)
print({body.content for body in store.read_sources(wanted)})
"""

_GIVEN_UP = """
import sys
from tests.unit.test_gets_surroundings import *
store = S3Store(make_client(sys.argv[1]), threads=8)
bodies = store.read_sources(SOURCES * 99)
print(next(bodies).content, flush=True)
"""

_MAIN_ENDS_FIRST = """
import sys, threading
from tests.unit.test_gets_surroundings import *

def read():
    bodies = store.read_sources(SOURCES * 99)
    print(next(bodies).content, flush=True)
    begun.set()
    threading.main_thread().join()
    print(len(list(bodies)))

store = S3Store(make_client(sys.argv[1]), threads=8)
begun = threading.Event()
threading.Thread(target=read).start()
begun.wait()
"""


def test_few_files_are_enough(s3: ScriptedS3) -> None:
    assert run(_FEW_FILES, s3).stdout == "{b'hello'}\n"


def test_a_process_ends_when_all_is_read_though_its_main_thread_has_ended(s3: ScriptedS3) -> None:
    assert run(_MAIN_ENDS_FIRST, s3).stdout == f"b'hello'\n{40 * 99 - 1}\n"


def test_a_process_ends_though_sources_that_are_not_taken_are_under_way(s3: ScriptedS3) -> None:
    assert run(_GIVEN_UP, s3).stdout == "b'hello'\n"


def run(program: str, s3: ScriptedS3) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, s3.url],
        cwd=REPO_ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
