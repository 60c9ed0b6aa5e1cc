"""A commit log that somebody deleted comes back from the versions of its bucket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import boto3
import jmespath  # type: ignore[import-untyped] # no stubs are installed
import pytest

from compactor.errors import IntegrityError
from compactor.invocation import kept_store
from tests.support.moto_server import moto_server
from tests.unit.test_handlers import Place

_numbers = count()
_LOG = "_compactor/compacted/partitions/a/commits/"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def place(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Buckets with one partition; that of the state is versioned, as the stack makes it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    kept_store.cache_clear()
    number = next(_numbers)
    client = boto3.client("s3", endpoint_url=endpoint)
    made = Place(client, f"source-{number}", f"lake-{number}")
    for bucket in (made.source, made.lake):
        client.create_bucket(Bucket=bucket)
    client.put_bucket_versioning(Bucket=made.lake, VersioningConfiguration={"Status": "Enabled"})
    made.put("logs/a/1.json", b'{"id": 1}\n')
    made.put("logs/a/2.log", b"2026-01-02 03:04:05 line\n")
    yield made
    kept_store.cache_clear()


@pytest.fixture
def manual(repo_root: Path) -> str:
    text = (repo_root / "docs/operations.md").read_text(encoding="utf-8")
    return text.partition("## When a commit log is lost\n")[2].partition("\n## ")[0]


def _compact(place: Place) -> str:
    found = place.discover()
    (item,) = place.items(found)
    status: str = place.compact(found, item)["status"]
    return status


@pytest.mark.parametrize("names", [(f"{1:020d}.json.gz",), ("",)], ids=["an entry", "the log"])
def test_what_was_deleted_comes_back_by_the_command_of_the_manual(
    place: Place, manual: str, names: tuple[str, ...]
) -> None:
    assert _compact(place) == "done"
    outputs = place.contents(place.lake, "compacted/")
    log = place.contents(place.lake, _LOG)
    for key in (key for key in log for name in names if key.startswith(_LOG + name)):
        place.s3.delete_object(Bucket=place.lake, Key=key)
    place.put("logs/a/3.json", b'{"id": 3}\n')
    with pytest.raises(IntegrityError, match=r"docs/operations\.md"):
        _compact(place)
    assert place.contents(place.lake, "compacted/") == outputs

    listed = place.s3.list_object_versions(Bucket=place.lake, Prefix=_LOG)
    query = re.search(r"--query '(.*)'", manual)
    assert query is not None
    for key, version in jmespath.search(query[1], listed):
        place.s3.delete_object(Bucket=place.lake, Key=key, VersionId=version)

    assert place.contents(place.lake, _LOG) == log
    assert _compact(place) == "done"
    assert len(place.contents(place.lake, "compacted/")) == len(outputs) + 1
