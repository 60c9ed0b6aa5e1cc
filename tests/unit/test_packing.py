"""Which sources share an output, and what that output is called."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.encoding.output_encoding import (
    ASSUMED_RATIO,
    COMPRESSED_TARGET_BYTES,
    PLAIN_TARGET_BYTES,
    PackingClass,
    output_form,
    packing_class,
    stored_bytes,
    target_bytes,
)
from compactor.limits import WorkerLimits
from compactor.model import Compression, Format, ObjectGroup, Signature, SourceObject
from compactor.planning.packing import copied, make_group, pack
from tests.support.examples import ON_LINES, settings, source

MIB = 1024 * 1024
SMALL = 5 * MIB


ENDS = ("json", "json.gz", "parquet")


def groups(sources: list[SourceObject], **given: Any) -> list[ObjectGroup]:
    return [packed.group for packed in pack(sources, settings(**given), {})]


def names(group: ObjectGroup) -> list[str]:
    return [one.key.rsplit("/", 1)[-1] for one in group.sources]


@pytest.mark.parametrize(
    ("key", "kind", "compression"),
    [
        ("a/b.json", "json", Compression.NONE),
        ("a/b.jsonl.gz", "json", Compression.GZIP),
        ("a/b.ndjson.zst", "json", Compression.ZSTD),
        ("a/b.csv.GZ", "csv", Compression.GZIP),
        ("a/b.tsv.zstd", "tsv", Compression.ZSTD),
        ("a/b.log.gzip", "text", Compression.GZIP),
        ("a/b.txt", "text", Compression.NONE),
        ("a/1_CloudTrail_us-east-1_x.json.gz", "cloudtrail", Compression.GZIP),
        ("a/1_vpcflowlogs_us-east-1_x.log.gz", "vpc_flow", Compression.GZIP),
        ("a/1_elasticloadbalancing_us-east-1_x.log.gz", "text", Compression.GZIP),
        ("a_CloudTrail_b/c.dat", "unknown", Compression.NONE),
        ("a/b", "unknown", Compression.NONE),
        ("a/.gz", "unknown", Compression.GZIP),
    ],
)
def test_the_key_decides_the_class(key: str, kind: str, compression: Compression) -> None:
    assert packing_class(key) == PackingClass(kind, compression)


def test_a_signature_that_was_seen_outweighs_the_key() -> None:
    seen = Signature(Format.CSV, Compression.ZSTD, b"a,b")
    assert packing_class("x.json.gz", seen) == PackingClass(Format.CSV, Compression.ZSTD, b"a,b")


def test_sources_of_different_classes_never_share_a_group() -> None:
    mixed = [source(name) for name in ("a.json", "b.csv", "c.json.gz", "d.json", "e.csv", "f")]
    found = sorted(names(group) for group in groups(mixed))
    assert found == [["a.json", "d.json"], ["b.csv", "e.csv"], ["c.json.gz"], ["f"]]


def test_keys_and_headers_of_kafka_connect_share_no_group_with_their_values() -> None:
    parts = ("", ".keys", ".headers")
    written = [source(f"a.b+0+{n}{part}.{end}") for n in "12" for part in parts for end in ENDS]
    found = sorted(names(group) for group in groups(written))
    expected = [[f"a.b+0+{n}{part}.{end}" for n in "12"] for part in parts for end in ENDS]
    assert found == sorted(expected)


def test_misfits_are_packed_by_what_they_turned_out_to_be() -> None:
    one, two, three = source("a.json"), source("b.json"), source("c.json")
    seen = {
        one.identity: Signature(Format.CSV, Compression.NONE, b"a"),
        three.identity: Signature(Format.CSV, Compression.NONE, b"b"),
    }
    found = [names(packed.group) for packed in pack([one, two, three], settings(), seen)]
    assert sorted(found) == [["a.json"], ["b.json"], ["c.json"]]


def test_default_targets_depend_on_whether_the_output_is_compressed() -> None:
    default = settings()
    assert target_bytes(default, Compression.NONE) == PLAIN_TARGET_BYTES == 1024 * MIB
    assert target_bytes(default, Compression.GZIP) == COMPRESSED_TARGET_BYTES == 128 * MIB
    assert target_bytes(default, Compression.ZSTD) == COMPRESSED_TARGET_BYTES
    assert target_bytes(settings(target_bytes=SMALL), Compression.NONE) == SMALL


def test_the_output_has_the_sources_compression_by_default() -> None:
    def encoding(source: Compression, **given: str) -> Compression:
        return output_form(settings(**given), "a.json").encoding_of(source)

    assert encoding(Compression.ZSTD) is Compression.ZSTD
    assert encoding(Compression.ZSTD, compression="gzip") is Compression.GZIP
    assert encoding(Compression.GZIP, compression="none") is Compression.NONE


def test_a_group_is_closed_when_the_next_source_would_not_fit() -> None:
    given_ = settings(target_bytes=SMALL)
    sizes = (2 * MIB, 2 * MIB, MIB, 1, SMALL // 2 - 1)
    sources = [source(f"{n}.json", size) for n, size in enumerate(sizes)]
    packed = list(pack(sources, given_, {}))
    assert [[n[0] for n in names(p.group)] for p in packed] == [["0", "1", "2"], ["3", "4"]]
    assert [p.full for p in packed] == [True, False]


@pytest.mark.parametrize(
    ("name", "compression", "factor"),
    [
        ("a.json", "gzip", 1 / ASSUMED_RATIO),
        ("a.json.gz", "none", ASSUMED_RATIO),
        ("a.json.gz", "zstd", 1),
        ("a.json", "none", 1),
        ("a.json", "same", 1),
    ],
)
def test_the_target_is_held_against_the_estimated_output(
    name: str, compression: str, factor: float
) -> None:
    each = int(MIB / factor)
    given_ = {"target_bytes": SMALL, "small_object_bytes": SMALL, "compression": compression}
    sources = [source(f"{n}{name}", each) for n in range(7)]
    sources = [one for one in sources if not copied(one, settings(**given_), packing_class(name))]
    assert [len(group.sources) for group in groups(sources, **given_)] == [5, 2]


def test_a_group_has_a_bounded_number_of_sources() -> None:
    assert settings().limits.group_sources == 50_000
    few = settings(limits=WorkerLimits(group_sources=3))
    packed = list(pack([source(f"{n}.json") for n in range(6)], few, {}))
    assert [(len(p.group.sources), p.full) for p in packed] == [(3, True), (3, True)]


def test_a_source_larger_than_the_target_is_alone() -> None:
    # As CloudTrail lines it cannot be copied.
    given_: dict[str, Any] = {"target_bytes": SMALL, "formats": ON_LINES}
    sizes = (1, 3 * SMALL, 1)
    found = groups([source(f"{n}_CloudTrail_.json", s) for n, s in enumerate(sizes)], **given_)
    assert [len(group.sources) for group in found] == [1, 1, 1]
    assert not any(group.copy for group in found)


def test_large_sources_are_copied_and_small_ones_are_not() -> None:
    given_ = settings(target_bytes=10 * MIB)
    plain = packing_class("a.json")
    assert copied(source("a.json", 5 * MIB), given_, plain)
    assert not copied(source("a.json", 5 * MIB - 1), given_, plain)
    lower = settings(target_bytes=10 * MIB, small_object_bytes=7)
    assert copied(source("a.json", 7), lower, plain)
    assert not copied(source("a.json", 6), lower, plain)
    (group,) = groups([source("a.json", 8)], small_object_bytes=7)
    assert group.copy


@pytest.mark.parametrize(
    ("key", "given_"),
    [
        ("a.json", {"compression": "gzip"}),
        ("a.json.gz", {"compression": "none"}),
        ("a.json", {"format": "json_lines"}),
        ("a_CloudTrail_b.json", {"formats": ON_LINES}),
    ],
)
def test_a_source_whose_bytes_must_change_is_never_copied(key: str, given_: Any) -> None:
    wanted = settings(small_object_bytes=1, **given_)
    assert not copied(source(key, 100), wanted, packing_class(key))
    assert copied(source(key, 100), settings(small_object_bytes=1), packing_class(key))


def test_sources_of_no_bytes_alone_make_no_group() -> None:
    assert groups([source("a.json", 0), source("b.json", 0)]) == []
    (group,) = groups([source("a.json", 0), source("b.json", 1)])
    assert names(group) == ["a.json", "b.json"]


sizes = st.lists(st.integers(0, 3 * SMALL), max_size=40)
kinds = st.sampled_from(["json", "csv.gz", "dat", "log.zst"])


@given(sizes, st.data(), st.sampled_from(["same", "none", "gzip", "zstd"]))
def test_every_source_with_bytes_is_in_one_group_in_key_order(
    sizes: list[int], data: st.DataObject, compression: str
) -> None:
    sources = [source(f"{n:03}.{data.draw(kinds)}", size) for n, size in enumerate(sizes)]
    given_ = settings(target_bytes=SMALL, compression=compression)
    found = [packed.group for packed in pack(sources, given_, {})]
    keys = [one.key for group in found for one in group.sources]
    assert len(keys) == len(set(keys))
    assert set(keys) >= {one.key for one in sources if one.size}
    for group in found:
        assert names(group) == sorted(names(group))
        assert group.size > 0
        classes = {packing_class(one.key) for one in group.sources}
        assert len(classes) == 1
        if len(group.sources) > 1:
            (cls,) = classes
            output = group.form.encoding_of(cls.compression)
            total = sum(stored_bytes(one.size, cls.compression, output) for one in group.sources)
            assert total <= SMALL


def test_the_id_depends_on_the_sources_their_order_and_every_option_that_shapes_the_bytes() -> None:
    one, two = source("a.json"), source("b.json")
    other_etag = source("b.json", etag="other")
    other_bucket = SourceObject("elsewhere", two.key, two.etag, two.size, two.last_modified)
    ids = [
        make_group(sources, settings()).id
        for sources in ((one, two), (two, one), (one,), (one, other_etag), (one, other_bucket))
    ]
    ids += [
        make_group((one, two), settings(**given_)).id
        for given_ in (
            {"format": "json_lines"},
            {"compression": "gzip"},
            {"formats": [{"format": "text", "encoding": "single_byte"}]},
        )
    ]
    ids.append(make_group((one,), settings(), copy=True).id)
    assert len(set(ids)) == len(ids)
    assert all(len(one_id) == 32 for one_id in ids)


def test_the_id_does_not_depend_on_what_leaves_the_bytes_alone() -> None:
    one = source("a.json")
    later = SourceObject(one.bucket, one.key, one.etag, one.size, 0.0, "STANDARD_IA")
    same = {
        make_group(sources, settings(**given_)).id
        for sources in ((one,), (later,))
        for given_ in (
            {},
            {"target_bytes": SMALL},
            {"min_objects": 5},
            {"delete_after": "30d"},
        )
    }
    assert len(same) == 1
