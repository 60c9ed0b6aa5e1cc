from __future__ import annotations

import gzip
import io
import json
import statistics
from pathlib import Path

import pytest

from compactor.errors import InvalidInput
from compactor_dev.benchmark import datasets
from compactor_dev.benchmark.datasets import SETS, DataSet, Kind, named, objects, total
from compactor_dev.benchmark.digests import NO_RECORDS, Records, of_lines, of_output, of_trails

SMALL = DataSet("small", "small", 6, 5)
TRAILS = DataSet("trails", "trails", 4, 3, Kind.CLOUDTRAIL, gzip=True)


def digest(records: list[bytes]) -> Records:
    return of_lines(io.BytesIO(b"".join(record + b"\n" for record in records)))


@pytest.mark.parametrize("data_set", [SMALL, TRAILS])
def test_the_same_set_has_the_same_bytes_every_time(data_set: DataSet) -> None:
    assert list(objects(data_set)) == list(objects(data_set))


def test_no_two_objects_of_a_set_are_alike() -> None:
    assert len({one.body for one in objects(SMALL)}) == SMALL.objects


def test_objects_come_in_the_order_of_their_keys() -> None:
    names = [one.name for one in objects(DataSet("many", "many", 1_200, 1))]
    assert names == sorted(set(names))


@pytest.mark.parametrize(
    ("name", "mean_bytes"), [("json-4k", 4_000), ("json-100k", 100_000), ("json-4k-many", 4_000)]
)
def test_objects_are_about_as_large_as_the_name_of_their_set_says(
    name: str, mean_bytes: int
) -> None:
    sizes = [len(one.body) for one in objects(SETS[name].reduced(40))]
    assert 0.9 * mean_bytes < statistics.mean(sizes) < 1.15 * mean_bytes


def test_a_large_object_repeats_its_records() -> None:
    once = next(objects(SMALL))
    repeated = next(objects(DataSet("small", "small", 6, 5, repeat=3)))
    assert repeated.body == once.body * 3
    assert repeated.records == once.records * 3


def test_gzip_changes_the_bytes_but_not_the_records() -> None:
    packed = DataSet("small", "small", 6, 5, gzip=True)
    plain = list(objects(SMALL))
    assert [gzip.decompress(one.body) for one in objects(packed)] == [one.body for one in plain]
    assert total(objects(packed)) == total(iter(plain))


def test_every_line_is_a_json_object() -> None:
    for one in objects(SMALL):
        assert len([json.loads(line) for line in one.body.splitlines()]) == SMALL.rows


def test_a_cloudtrail_object_is_one_document() -> None:
    for one in objects(TRAILS):
        document = json.loads(gzip.decompress(one.body))
        assert len(document["Records"]) == one.records.count == TRAILS.rows


def test_an_unknown_set_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"--sets: 'json-5k'.*json-4k"):
        named("json-4k,json-5k")


def test_sets_come_in_the_order_asked_for() -> None:
    assert [one.name for one in named("large,json-4k")] == ["large", "json-4k"]


def test_reducing_a_set_never_enlarges_it() -> None:
    assert SMALL.reduced(100) == SMALL
    assert SMALL.reduced(2).objects == 2


def test_the_order_of_records_does_not_matter() -> None:
    assert digest([b"a", b"b", b"c"]) == digest([b"c", b"a", b"b"])


@pytest.mark.parametrize(
    "other",
    [[b"a", b"b"], [b"a", b"b", b"b"], [b"a", b"b", b"c", b"c"], [b"a", b"b", b"C"], [b"ab", b"c"]],
)
def test_lost_doubled_and_changed_records_show(other: list[bytes]) -> None:
    assert digest([b"a", b"b", b"c"]) != digest(other)


def test_a_missing_last_newline_does_not_hide_a_record() -> None:
    assert of_lines(io.BytesIO(b"a\nb")) == of_lines(io.BytesIO(b"a\nb\n"))


def test_documents_one_behind_the_other_hold_the_records_of_all() -> None:
    one, two = b'{"Records":[{"a":1},{"b":"]}"}]}', b'{"Records":[{"c":3}]}'
    assert of_trails(one + two) == of_trails(one) + of_trails(two)
    assert of_trails(one + two).count == 3


@pytest.mark.parametrize("members", [1, 3])
def test_gzip_outputs_are_read_to_the_end(tmp_path: Path, members: int) -> None:
    copy = tmp_path / "output"
    copy.write_bytes(b"".join(gzip.compress(b"%d\n" % n, mtime=0) for n in range(members)))
    expected = digest([b"%d" % n for n in range(members)])
    assert of_output(copy, trails=False) == expected


@pytest.mark.parametrize(
    ("content", "trails"),
    [
        (gzip.compress(b"a\n" * 1_000, mtime=0)[:-9], False),
        (b'{"Records":[{"a":1}', True),
        (b'[{"a":1}]', True),
    ],
)
def test_an_output_that_cannot_be_read_has_no_records(
    tmp_path: Path, content: bytes, trails: bool
) -> None:
    copy = tmp_path / "output"
    copy.write_bytes(content)
    assert of_output(copy, trails=trails) == NO_RECORDS


def test_outputs_of_naive_concatenation_count_as_equal(tmp_path: Path) -> None:
    for data_set in (SMALL, TRAILS):
        copy = tmp_path / data_set.name
        copy.write_bytes(b"".join(one.body for one in objects(data_set)))
        found = of_output(copy, trails=data_set.kind is Kind.CLOUDTRAIL)
        assert found == total(objects(data_set))
        assert found.count == data_set.objects * data_set.rows


def test_the_sets_that_differ_in_compression_alone_hold_the_same_records() -> None:
    plain, packed = (SETS[name].reduced(3) for name in ("json-4k", "json-4k-gzip"))
    assert total(datasets.objects(plain)) == total(datasets.objects(packed))
