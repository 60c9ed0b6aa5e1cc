"""Content-Type, Content-Encoding and user metadata of sources: kept, and given back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from compactor.attributes import Attributes, from_headers
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.s3.store import S3Store, make_client
from compactor_cli import restore_targets
from tests.support.examples import PARTITION
from tests.support.memory_store import MemoryStore
from tests.support.s3_requests import ETAG, NoTime
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, scripted_s3
from tests.support.world import LOG_LINE, World
from tests.unit.test_cli_restore_many import Command, restore, use

__all__ = ["restore"]

MIB = 1 << 20
KEPT = {
    "x-amz-meta-Owner": "Ann B",
    "x-amz-meta-run-id": "7",
    "Content-Encoding": "gzip",
    "Content-Type": "text/plain",
}
ATTRIBUTES = Attributes("gzip", (("owner", "Ann B"), ("run-id", "7")), "text/plain")


# What S3 answers.


@pytest.fixture
def s3() -> Iterator[ScriptedS3]:
    with scripted_s3() as script:
        yield script


def answers(headers: Mapping[str, str]) -> Any:
    """Every object has these headers."""

    def answer(asked: Asked) -> Answer:
        told = {"ETag": f'"{ETAG}"', "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT", **headers}
        size = int(asked.path.rpartition("-")[2])
        return Answer(200, b"" if asked.method == "HEAD" else bytes(size), told)

    return answer


def store_on(s3: ScriptedS3, *, libcurl: bool = True) -> S3Store:
    patience = NoTime().patience()
    return S3Store(make_client(s3.url), threads=16, libcurl=libcurl, patience=patience)


def read(store: S3Store, *sizes: int) -> list[SourceBody]:
    return list(
        store.read_sources(
            SourceObject("b", f"k{n}-{s}", ETAG, s, 0.0) for n, s in enumerate(sizes)
        )
    )


WAYS = pytest.mark.parametrize(
    "way",
    [{}, {"libcurl": False}],
    ids=["libcurl", "botocore"],
)
SIZES = pytest.mark.parametrize("size", [5, MIB, 9 * MIB], ids=["small", "held", "streamed"])


@WAYS
@SIZES
def test_whatever_reads_a_source_returns_its_headers(
    s3: ScriptedS3, way: dict[str, bool], size: int
) -> None:
    s3.answer = answers(KEPT)
    found = read(store_on(s3, **way), *[size] * 3)
    assert [one.attributes for one in found] == [ATTRIBUTES] * 3


@WAYS
@SIZES
def test_without_any_nothing_is_returned(s3: ScriptedS3, way: dict[str, bool], size: int) -> None:
    s3.answer = answers({"Content-Type": "binary/octet-stream"})
    (found,) = read(store_on(s3, **way), size)
    assert (found.attributes, found.error) == (None, None)


@pytest.mark.parametrize("size", [5, MIB])
def test_a_source_that_is_held_whole_costs_one_request(s3: ScriptedS3, size: int) -> None:
    s3.answer = answers(KEPT)
    read(store_on(s3), size)
    assert [one.method for one in s3.asked] == ["GET"]


def test_headers_are_read_whatever_their_case() -> None:
    headers = {"X-Amz-Meta-A": "B, c", "CONTENT-ENCODING": "br", "Content-Type": "text/x"}
    assert from_headers(headers.items()) == Attributes("br", (("a", "B, c"),), "text/x")
    assert from_headers({"etag": "e", "content-type": "binary/octet-stream"}.items()) is None


@pytest.mark.parametrize("size", [5, 3 * MIB])
@pytest.mark.parametrize("libcurl", [True, False])
def test_objects_are_written_with_them(s3: ScriptedS3, size: int, libcurl: bool) -> None:
    s3.answer = lambda asked: Answer(200, b"", {"ETag": '"e"'})
    store = store_on(s3, libcurl=libcurl)
    store.create("b", "k", bytes(size), attributes=ATTRIBUTES)
    store.replace("b", "k", bytes(size), etag="e", attributes=ATTRIBUTES)
    s3.answer = lambda asked: Answer(
        200,
        b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
    )
    store.create_upload("b", "k", attributes=ATTRIBUTES)
    assert len(s3.asked) == 3
    for asked in s3.asked:
        assert asked.headers["x-amz-meta-owner"] == "Ann B"
        assert asked.headers["x-amz-meta-run-id"] == "7"
        assert asked.headers["content-encoding"] in {"gzip", "gzip,aws-chunked"}
        assert asked.headers["content-type"] == "text/plain"


# What is kept, and given back.

DAY = 86_400
META = {"owner": "Ann", "run-id": "7"}
COPIED_BYTES = 2_000


def describe(world: World, name: str, **given: Any) -> None:
    """Give an object what S3 keeps beside its bytes."""
    objects = world.store._buckets["source"].objects
    key = PARTITION.prefix + name
    objects[key] = replace(objects[key], **given)


def described(world: World) -> dict[str, Attributes | None]:
    objects = world.store._buckets["source"].objects
    return {key.removeprefix(PARTITION.prefix): one.attributes for key, one in objects.items()}


def commits(world: World) -> list[Commit]:
    return list(CommitLog(world.store, world.settings, PARTITION).every_commit())


def world_with_attributes() -> World:
    """Joined, encoded, compressed and copied sources."""
    world = World(small_object_bytes=COPIED_BYTES, delete_after="1d")
    world.store = MemoryStore(world.clock, min_part_bytes=1)
    world.store.add_bucket("lake")
    world.add("a.json", '{{"id": "{}"}}')
    world.add("b.json", '{{"id": "{}"}}')
    world.add("encoded.json", '{{"id": "{}"}}', packed=True)
    world.add("c.log.gz", LOG_LINE, packed=True)
    world.add("copied.log", LOG_LINE, 90)
    describe(world, "a.json", metadata=META)
    describe(world, "encoded.json", encoding="gzip", metadata=META)
    describe(world, "c.log.gz", content_type="text/x-log", encoding="aws-chunked,gzip")
    describe(world, "copied.log", metadata={"k": "v"}, content_type="text/plain")
    assert world.run().status == "done"
    return world


def test_what_s3_keeps_beside_bytes_comes_back_with_them(
    restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_targets, "_PART_BYTES", 3_000)
    world = use(world_with_attributes(), monkeypatch)
    before = described(world)
    assert sum(one is not None for one in before.values()) == 4
    contents = dict(world.store.contents("source"))
    world.clock.advance(2 * DAY)
    world.clean_up()
    assert not world.sources()
    code, out, _ = restore("--all", "-o", "s3://source/", "--json")
    assert code == 0
    assert described(world) == before
    found = world.store.contents("source")
    opened = {k: gzip.decompress(b) if b[:2] == b"\x1f\x8b" else b for k, b in found.items()}
    assert opened == {
        k: gzip.decompress(b) if b[:2] == b"\x1f\x8b" else b for k, b in contents.items()
    }
    shown = {one["key"].rpartition("/")[2]: one["attributes"] for one in json.loads(out)}
    assert shown["b.json"] == {}
    assert shown["copied.log"] == {"metadata": {"k": "v"}, "content_type": "text/plain"}


def test_what_was_encoded_is_encoded_again(
    restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = use(world_with_attributes(), monkeypatch)
    assert restore("--all", "-o", "s3://other/")[0] == 0
    objects = world.store._buckets["other"].objects
    found = {key.rpartition("/")[2]: one for key, one in objects.items()}
    encoded, packed = found["encoded.json"], found["c.log.gz"]
    assert gzip.decompress(encoded.body)[:1] == b"{"
    assert (encoded.encoding, encoded.metadata) == ("gzip", META)
    assert gzip.decompress(packed.body)
    assert packed.content_type == "text/x-log"


def test_a_source_with_an_encoding_and_no_suffix_is_joined_like_any_other() -> None:
    world = world_with_attributes()
    world.check()
    assert set(world.destination()) == world.records


def test_entries_without_attributes_say_nothing_of_them_and_equal_ones_are_kept_once() -> None:
    world = World()
    for number in range(50):
        world.add(f"{number}.json", '{{"id": "{}"}}')
    world.run()
    (commit,) = commits(world)
    plain = gzip.decompress(encode_commit(commit))
    assert b"attribute" not in plain
    shared = Attributes(metadata=(("owner", "Ann"),))
    rows = tuple(row._replace(attributes=shared) for row in commit.rows)
    told = gzip.decompress(encode_commit(replace(commit, rows=rows)))
    assert told.count(b"Ann") == 1
    again = decode_commit(encode_commit(replace(commit, rows=rows)))
    assert [row.attributes for row in again.rows] == [shared] * 50


# What was encrypted before it came to S3.


@pytest.mark.parametrize(
    "name", ["x-amz-key-v2", "x-amz-key", "x-amz-iv", "x-amz-3", "x-amz-crypto-instr-file"]
)
@pytest.mark.parametrize("large", [False, True])
def test_an_object_with_metadata_of_client_side_encryption_is_left_alone(
    name: str, large: bool
) -> None:
    world = World(target_bytes=5 * MIB)
    world.add("a.json", '{{"id": "{}"}}')
    if large:
        world.put("a.json", world.store.contents("source")[f"{PARTITION.prefix}a.json"] * 200_000)
    world.add("b.json", '{{"id": "{}"}}')
    describe(world, "a.json", metadata={name: "", "owner": "Ann"})
    receipt = world.run()
    left = receipt.left_alone["client_side_encrypted"]
    assert (left.objects, left.example) == (1, f"{PARTITION.prefix}a.json")
    assert "says that it was encrypted before it came to S3" in left.detail
    assert receipt.counts.objects_in == 1
    world.check()


def test_an_object_with_an_instruction_file_beside_it_is_left_alone_with_it() -> None:
    world = World(formats=[{"format": "text", "encoding": "single_byte"}])
    world.put("a.json", bytes(range(1, 256)) + b"\n")
    world.put("a.json.instruction", b'{"x-amz-iv": "a", "x-amz-key-v2": "b"}\n')
    describe(world, "a.json.instruction", metadata={"x-amz-crypto-instr-file": ""})
    world.put("b.json", b"joined\n")
    world.put("alone.instruction", b"joined, too\n")
    receipt = world.run()
    assert receipt.skipped["client_side_encrypted"].objects == 2
    outputs = world.store.contents("lake", "compacted/").values()
    assert b"".join(sorted(outputs)) == b"joined\njoined, too\n"
