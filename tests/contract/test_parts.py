"""Parts: what an upload is made of, sent or copied, and what makes S3 refuse it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest

from compactor.errors import IntegrityError, ObjectMissing, SourceChanged
from compactor.model import StoredPart
from tests.contract.benches import Bench
from tests.contract.cases import LARGE, MIB, REFUSED, publish, upload
from tests.support.memory_upload import md5

# What a server refuses tells nothing where it refuses everything.
CONTROL = "control", b"an upload with nothing wrong about it"


def test_a_wrong_checksum_keeps_the_output_from_being_published(bench: Bench) -> None:
    publish(bench, *CONTROL)
    upload_id, parts = upload(bench, "out", b"output")
    with pytest.raises(IntegrityError):
        bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=1)
    assert bench.contents() == dict([CONTROL])


def test_a_part_whose_bytes_are_not_those_of_its_checksum_is_refused(bench: Bench) -> None:
    upload_id = bench.store.create_upload(bench.bucket, "out")
    with bench.damaged_parts(), pytest.raises(REFUSED):
        bench.store.upload_part(bench.bucket, "out", upload_id, 1, b"output")
    with pytest.raises(REFUSED):
        complete(bench, upload_id, [StoredPart(1, md5(b"output").hex(), 6)], b"output")
    assert bench.contents() == {}


def complete(bench: Bench, upload_id: str, parts: Sequence[StoredPart], body: bytes) -> None:
    crc32 = zlib.crc32(body)
    bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=crc32)


def test_parts_out_of_order_are_refused(bench: Bench) -> None:
    publish(bench, *CONTROL)
    first, second = b"a" * (5 * MIB), b"b" * (5 * MIB)
    upload_id, parts = upload(bench, "out", first, second)
    with pytest.raises(REFUSED):
        complete(bench, upload_id, parts[::-1], second + first)
    assert bench.contents() == dict([CONTROL])


def test_a_part_before_the_last_has_at_least_five_mebibytes(bench: Bench) -> None:
    publish(bench, *CONTROL)
    bodies = b"a" * (5 * MIB - 1), b"bc"
    upload_id, parts = upload(bench, "out", *bodies)
    with pytest.raises(REFUSED):
        complete(bench, upload_id, parts, b"".join(bodies))
    assert bench.contents() == dict([CONTROL])


def test_an_upload_of_no_parts_is_refused(bench: Bench) -> None:
    publish(bench, *CONTROL)
    upload_id, _ = upload(bench, "out", b"output")
    with pytest.raises(REFUSED):
        complete(bench, upload_id, [], b"")
    assert bench.contents() == dict([CONTROL])


def test_a_part_that_was_not_stored_is_refused(bench: Bench) -> None:
    publish(bench, *CONTROL)
    upload_id, (part,) = upload(bench, "out", b"output")
    with pytest.raises(REFUSED):
        complete(bench, upload_id, [StoredPart(2, part.etag, part.size)], b"output")
    assert bench.contents() == dict([CONTROL])


def test_a_part_that_was_stored_again_is_no_longer_the_first(bench: Bench) -> None:
    upload_id, first = upload(bench, "out", b"first")
    second = [bench.store.upload_part(bench.bucket, "out", upload_id, 1, b"second")]
    with pytest.raises(REFUSED):
        complete(bench, upload_id, first, b"first")
    assert bench.contents() == {}
    complete(bench, upload_id, second, b"second")
    assert bench.contents() == {"out": b"second"}


def test_a_part_that_is_not_listed_is_left_out(bench: Bench) -> None:
    upload_id, parts = upload(bench, "out", b"a" * (5 * MIB), b"left out")
    complete(bench, upload_id, parts[:1], b"a" * (5 * MIB))
    assert bench.contents() == {"out": b"a" * (5 * MIB)}


@pytest.mark.parametrize("number", [0, 10_001])
def test_part_numbers_go_from_1_to_10000(bench: Bench, number: int) -> None:
    upload_id = bench.store.create_upload(bench.bucket, "out")
    with pytest.raises(REFUSED):
        bench.store.upload_part(bench.bucket, "out", upload_id, number, b"output")
    part = bench.store.upload_part(bench.bucket, "out", upload_id, 10_000, b"output")
    assert part.number == 10_000


def test_an_upload_belongs_to_its_key(bench: Bench) -> None:
    upload_id, parts = upload(bench, "out", b"output")
    with pytest.raises(ObjectMissing):
        bench.store.upload_part(bench.bucket, "other", upload_id, 1, b"output")
    with pytest.raises(ObjectMissing):
        bench.store.complete_upload(
            bench.bucket, "other", upload_id, parts, crc32=zlib.crc32(b"output")
        )
    assert bench.contents() == {}


def test_parts_may_be_ranges_of_a_source(bench: Bench) -> None:
    source = bench.seed("large", LARGE)
    upload_id = bench.store.create_upload(bench.bucket, "out")
    cut = 5 * MIB
    ranges = ((0, cut), (cut, len(LARGE) - cut))
    parts = [
        bench.store.copy_part(bench.bucket, "out", upload_id, n, source, start, length)
        for n, (start, length) in enumerate(ranges, start=1)
    ]
    assert [(part.number, part.size) for part in parts] == [(1, cut), (2, len(LARGE) - cut)]
    bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=None)
    assert bench.contents()["out"] == LARGE


def test_a_source_that_is_gone_cannot_be_copied(bench: Bench) -> None:
    source = bench.seed("large", b"content")
    bench.remove("large")
    upload_id = bench.store.create_upload(bench.bucket, "out")
    with pytest.raises(SourceChanged):
        bench.store.copy_part(bench.bucket, "out", upload_id, 1, source, 0, 7)


def test_a_source_that_changed_cannot_be_copied(bench: Bench) -> None:
    source = bench.seed("large", b"content")
    bench.seed("large", b"another")
    upload_id = bench.store.create_upload(bench.bucket, "out")
    with pytest.raises(SourceChanged):
        bench.store.copy_part(bench.bucket, "out", upload_id, 1, source, 0, 7)


@pytest.mark.parametrize(("start", "length"), [(7, 1), (5, 3)])
def test_a_range_beyond_the_end_of_a_source_is_not_copied(
    bench: Bench, start: int, length: int
) -> None:
    source = bench.seed("large", b"content")
    upload_id = bench.store.create_upload(bench.bucket, "out")
    with pytest.raises(REFUSED):
        bench.store.copy_part(bench.bucket, "out", upload_id, 1, source, start, length)


def test_copied_and_uploaded_parts_make_one_output_with_one_checksum(bench: Bench) -> None:
    source = bench.seed("large", LARGE)
    upload_id = bench.store.create_upload(bench.bucket, "out")
    copied = bench.store.copy_part(bench.bucket, "out", upload_id, 1, source, 0, 6 * MIB)
    sent = bench.store.upload_part(bench.bucket, "out", upload_id, 2, b"the rest")
    whole = LARGE[: 6 * MIB] + b"the rest"
    bench.store.complete_upload(bench.bucket, "out", upload_id, [copied, sent], crc32=None)
    assert bench.contents()["out"] == whole
    head = bench.store.head(bench.bucket, "out")
    assert head is not None
    assert (head.size, head.crc32) == (len(whole), zlib.crc32(whole))
