"""The second reading sees records as others do, and says nothing of what is joined rightly."""

from __future__ import annotations

import bz2
import gzip
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zstandard
from hypothesis import given as given_any
from hypothesis import strategies as st

from compactor.formats.csv_evidence import CsvDialect, Decision
from compactor.formats.spec import Decide
from compactor.limits import USUAL, WorkerLimits
from compactor.log.log import CommitLog
from compactor.model import Format, StoredPart, TableDialect
from compactor.outputs import compact
from compactor.outputs.detection import Detector, detector
from compactor.outputs.output_writer import OutputWriter
from compactor.second_reading import (
    Declared,
    Difference,
    Frame,
    Kind,
    NotReadable,
    Reading,
    Sample,
    comparing,
    header_of,
    judge,
    plain_pieces,
    read,
    sampling,
)
from compactor.second_reading.json_values import squeezed
from compactor.settings.settings import Settings
from compactor.verification.deep import examine
from tests.support.examples import PARTITION
from tests.support.naive_formats import without_rules
from tests.support.world import World

AUTO = Declared()
BOM = b"\xef\xbb\xbf"
STAMP = b"2026-01-02T03:04:05Z INFO "
RIGHT: dict[str, tuple[tuple[str, bytes], ...]] = {
    "CSV with a header": (
        ("a.csv", b"id,name\n1,x\n"),
        ("b.csv", BOM + b'id,name\n2,"y\n\nz"\n3,x'),
        ("c.csv", b"id,name\n"),
        ("d.csv", b'id,name\r\n2,"y\n\nz"\r\n'),
    ),
    "CSV without a header": tuple(
        (f"{n}.csv", b"%d,ok\r\n%d,-\r\n7,ok\r\n" % (n, n)) for n in range(3)
    ),
    "VPC flow logs": (
        ("a.log", b"version account-id srcaddr\n2 1 10.0.0.1\n"),
        ("b.log", b"version account-id srcaddr\n2 1 10.0.0.2"),
    ),
    "CloudTrail": (
        ("a_CloudTrail_x.json", b'{"Records":[{"a":1}, {"b": 2}]}'),
        ("b_CloudTrail_x.json", b' {"Records" : [{"a":\n"x  y"}] }\n'),
        ("c_CloudTrail_x.json", b'{"Records":[]}'),
        ("d_CloudTrail_x.json", b'{"Records":[\n{"half":"\\ud800"},\n{"a":1}]}'),
    ),
    "JSON without newlines": (
        ("a", b'{"a":"}{"}{"a":2}'),
        ("b", b'{"a":3}{"a":4}\n{"a":5} '),
    ),
    "JSON lines": (
        ("a.json", b'{"a":1}\n\n{"a":2}'),
        ("b.json", BOM + b'{"a":"\\ud800"}\n'),
        ("c.json", b'{"a":1}\r\n{"b":[1,\t"}{"]}\n'),
    ),
    "text": (
        ("a.log", STAMP + b"a\n" + STAMP + b"b"),
        ("b.log", STAMP + b"c\n\n\n" + STAMP + b"d\n"),
        ("c.log", BOM + STAMP + b"e\r\n"),
    ),
    "CloudFront": (
        ("a", b"#Version: 1.0\n#Fields: date x\n2026 1\n"),
        ("b", b"#Version: 1.0\n#Fields: date x\n2026 2"),
    ),
}
OPTIONS = [
    {},
    {"documents": "lines"},
    {"compression": "zstd"},
]


@pytest.mark.parametrize("given", OPTIONS, ids=["usual", "other outputs", "zstd"])
@pytest.mark.parametrize("how", ["sample", "all"])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_joined_rightly_is_committed_and_stays_without_findings(name, how, given) -> None:
    world = World(second_reading=how, **given)
    for key, content in RIGHT[name]:
        world.put(key, content)
    assert world.run().status == "done"
    commits = list(CommitLog(world.store, world.settings, PARTITION).every_commit())
    assert sum(len(one.rows) for one in commits) == len(RIGHT[name])
    for commit in commits:
        assert not examine(commit, world.store, world.settings)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.log", b"plain text\n", Kind.TEXT),
        ("a.log", b"one\rtwo\r", Kind.CR_TEXT),
        ("a.log", b"one\r\n", Kind.TEXT),
        ("a.csv", b"a,b\n", Kind.TABLE),
        ("a.csv.gz", b"a,b\n", Kind.TABLE),
        ("a.txt", b"a,b\n", Kind.TEXT),
        ("a", b'{"a":1}\n{"a":2}\n', Kind.JSON_LINES),
        ("a", b'{"a":1}', Kind.JSON_LINES),
        ("a", b'{"a":\n1}', Kind.JSON_DOCUMENT),
        ("a", b'[{"a":1}]', Kind.ARRAY),
        ("a", b'[\n {"a":1},\n {"a":[2]}\n]\n', Kind.ARRAY),
        ("a", b'[{"a":1},2]', Kind.JSON_DOCUMENT),
        ("a", b"[1,2]", Kind.JSON_DOCUMENT),
        ("a", b'{\n"fileVersion":"1.0","configurationItems":[{"a":1}]}', Kind.LIST),
        ("a", b'{"fileVersion":"1.0","configurationItems":[{"a":1}]}', Kind.JSON_LINES),
        ("a", b'{\n"items":[{"a":1}]}', Kind.JSON_DOCUMENT),
        ("a", b'{\n"Findings":[1]}', Kind.JSON_DOCUMENT),
        ("a", b'["a",1]\n["b",2]\n', Kind.JSON_LINES),
        ("a", b'{"a":1}{"a":2}', Kind.JSON_STREAM),
        ("a", b'{"Records":[{"a":1}]}', Kind.TRAIL),
        ("a", b'{"Records":[{"a":1}],"MillisBehindLatest":0}', Kind.LIST),
        ("a", b'{"Records":[{"a":1}]}\n{"Records":[]}\n', Kind.JSON_LINES),
        ("a", b"[2026-01-01 10:00:00] started\n", Kind.TEXT),
        ("a", b"{broken\n", Kind.TEXT),
        ("a", b"<34>Oct 11 22:14:15 web su: failed\n", Kind.TEXT),
        ("a", b'<?xml version="1.0"?><a/>', Kind.DOCUMENT),
        ("a", b"<Event><Id>1</Id></Event>\n<Event><Id>2</Id></Event>\n", Kind.TEXT),
        ("a", b"<info> [1.5] started\n<info> [1.6] ready\n", Kind.TEXT),
        ("a", b"---\nname: web\n", Kind.DOCUMENT),
        ("a.log", b"-----BEGIN CERTIFICATE-----\nMIIB\n", Kind.DOCUMENT),
        ("a", b"Received: from a by b\r\nSubject: x\r\n\r\nbody\r\n", Kind.DOCUMENT),
        ("a", b"user alice logged in\n", Kind.TEXT),
        ("a", b"---\n10:00 started\n", Kind.TEXT),
        ("a", b"[main]\nkey = value\n", Kind.DOCUMENT),
        ("a", b"#Software: IIS\r\n#Fields: date time\r\n2026 1\r\n", Kind.W3C),
        ("a", b"version account-id interface-id\n2 1 eni\n", Kind.FLOW),
        ("a", b"\x82\xa3key\xa5value", Kind.BINARY),
        ("a", b"PAR1\x15\x04\x15\x10\0", Kind.BINARY),
        ("a", "caf\u00e9 ".encode("latin-1") * 9 + b"is mostly ASCII, as logs are" * 9, Kind.TEXT),
    ],
)
def test_each_content_is_read_as_its_readers_do(name: str, content: bytes, kind: Kind) -> None:
    assert judge(content, name, AUTO).kind is kind
    assert judge(BOM + content, name, AUTO).kind is kind


@pytest.mark.parametrize("format_", [one for one in Format if one is not Format.PARQUET])
def test_every_format_that_may_be_declared_has_a_second_reader(format_: Format) -> None:
    assert judge(b"a\n", "a", Declared(format=format_.value)).kind is not Kind.BINARY


def test_what_the_settings_declare_is_believed() -> None:
    assert judge(b'{"a":1}', "a", Declared(format="text")) == Reading(Kind.TEXT)
    assert judge(b"a\tb\n", "a.log", Declared(format="tsv")) == Reading(Kind.TABLE, "\t")
    assert judge(b"a\0b\n", "a.log", Declared(nul_bytes=True)).kind is Kind.TEXT
    latin = "\u00e9t\u00e9 \u00e0 \u00e9\u00e8\u00ea".encode("latin-1")
    assert judge(latin, "a.log", AUTO).kind is Kind.BINARY
    assert judge(latin, "a.log", Declared(single_byte=True)).kind is Kind.TEXT


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        (b"a;b;c\n1;2,5;6\n", ";"),
        (b"a,b\n1,2\n", ","),
        (b"a|b|c\n1|2|3\n", "|"),
        (b"a\tb\n1\t2\n", "\t"),
        (b"sep=;\na,b;c\n", ";"),
        (b'"a;b;c",d\n"e",f\n', ","),
        (b"alone\n", ","),
        (b"a;b\n1;2,5\nragged\n", ";"),
    ],
)
def test_the_delimiter_is_the_one_that_every_line_has(content: bytes, delimiter: str) -> None:
    assert judge(content, "a.csv", AUTO).delimiter == delimiter


@pytest.mark.parametrize(
    "encode",
    [
        bytes,
        gzip.compress,
        bz2.compress,
        zstandard.compress,
        lambda body: gzip.compress(body[:3]) + gzip.compress(body[3:]) + b"\0" * 9,
        lambda body: zstandard.compress(body[:3]) + zstandard.compress(body[3:]),
        lambda body: b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstandard.compress(body),
    ],
)
def test_stored_bytes_are_decompressed_again(encode) -> None:
    stored = encode(b"one\ntwo\n")
    assert b"".join(plain_pieces(stored[n : n + 1] for n in range(len(stored)))) == b"one\ntwo\n"


def test_what_does_not_decompress_is_reported() -> None:
    with pytest.raises(NotReadable):
        list(plain_pieces((gzip.compress(b"cut off")[:-3],)))


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_pieces_of_any_size_are_read_alike(kind: Kind, size: int) -> None:
    contents = [BOM + content for sources in RIGHT.values() for _, content in sources]
    contents += [b'one\r\n"two\n', "caf\u00e9".encode()[:-1], b'[{"a": 12}, 34]', b""]
    for content in contents:
        pieces = [content[n : n + size] for n in range(0, len(content), size)]
        assert read(Reading(kind), pieces) == read(Reading(kind), (content,))


@given_any(st.lists(st.sampled_from([b'"', b"\\", b" ", b"\r\n", b"\t", b"{", b"x"])).map(b"".join))
def test_blanks_mean_nothing_but_in_strings(record: bytes) -> None:
    kept, in_string, escaped = bytearray(), False, False
    for byte in record:
        if in_string or byte not in b" \t\r\n":
            kept.append(byte)
        if byte == ord('"') and not escaped:
            in_string = not in_string
        escaped = in_string and byte == ord("\\") and not escaped
    if not in_string:
        assert squeezed(record) == bytes(kept)


def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    seen: list[tuple[str, ...]] = []

    def differences(stretches, *_: object, **__: object) -> list[object]:
        seen.extend(tuple(one.name for one in sources) for sources, _ in stretches)
        return []

    monkeypatch.setattr(sampling, "differences", differences)
    return seen


def taken(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    seen = compared(monkeypatch)
    sample.differences()
    return seen


def placed(sample: Sample, number: int, body: bytes | None = b"a\n") -> None:
    # The hash is least for the fifth.
    identity = bytes([abs(number - 5)])
    sample.place(str(number), identity, body, b"", (body or b"",))


def test_a_sample_is_the_first_and_last_sources_and_one_by_its_hash(monkeypatch) -> None:
    sample = Sample(Frame(), AUTO)
    for number in range(1, 11):
        placed(sample, number)
    assert taken(sample, monkeypatch) == [("1", "2"), ("5", "6"), ("9", "10")]


def test_one_source_that_is_too_large_to_keep_is_not_read_twice() -> None:
    sample = Sample(Frame(), AUTO)
    sample.place("large", b"1", b"a" * (USUAL.sampled_bytes + 1), b"", (b"b",))
    sample.place("streamed", b"2", None, b"", (b"b",))
    assert not sample.differences()
    alone = Sample(Frame(), AUTO, everything=True)
    alone.place("streamed", b"1", None, b"", (b"b",))
    assert not alone.differences()


def test_sources_too_large_to_keep_are_left_out_and_break_a_pair(monkeypatch) -> None:
    sample = Sample(Frame(), AUTO, limits=WorkerLimits(sampled_bytes=5))
    for number in range(1, 11):
        placed(sample, number, b"a" * 9 if number in {2, 10} else b"a")
    assert taken(sample, monkeypatch) == [("1",), ("5", "6"), ("8", "9")]


@pytest.mark.parametrize("how", ["sample", "all"])
def test_sources_of_a_header_alone_are_known_by_one_that_has_rows(how) -> None:
    world = World(second_reading=how, limits=WorkerLimits(stretch_sources=3))
    for number in range(30):
        world.put(f"{number:02}.csv", b"id,name\n" + (b"1,x\n" if number == 9 else b""))
    with without_rules(headed=True):
        assert world.run().status == "done"


def test_with_everything_stretches_share_a_source_so_that_every_joint_is_read(monkeypatch) -> None:
    sample = Sample(Frame(), AUTO, everything=True, limits=WorkerLimits(stretch_sources=3))
    found = compared(monkeypatch)
    for number in range(1, 7):
        placed(sample, number)
    sample.differences()
    pairs = [names for names in found if len(names) > 1]
    assert pairs == [("1", "2", "3"), ("3", "4", "5"), ("5", "6")]


def wait_before_comparing(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], object]) -> None:
    def differences(*given: Any, **more: Any) -> Iterator[Difference]:
        wait()
        return comparing.differences(*given, **more)

    monkeypatch.setattr(sampling, "differences", differences)


def test_what_is_left_of_a_group_is_stored_while_its_sample_is_read(monkeypatch) -> None:
    world = World()
    world.add_variety()
    begun, seen, upload_part = threading.Event(), [], world.store.upload_part

    def upload(*given: Any) -> StoredPart:
        seen.append(begun.wait(60))
        return upload_part(*given)

    wait_before_comparing(monkeypatch, begun.set)
    monkeypatch.setattr(world.store, "upload_part", upload)
    assert world.run().status == "done"
    assert seen
    assert all(seen)


def test_a_second_reading_that_comes_to_no_end_withholds_the_group(monkeypatch) -> None:
    world = World()
    world.add_variety()

    def fail() -> None:
        raise ArithmeticError("in another thread")

    wait_before_comparing(monkeypatch, fail)
    with pytest.raises(ArithmeticError, match="in another thread"):
        world.run()
    assert world.store.contents("lake", "compacted/") == {}
    assert not list(world.store.list_uploads("lake", ""))


def test_no_more_is_read_of_an_output_that_is_dropped(monkeypatch) -> None:
    stopped, usual = [], Sample.stop

    def stop(sample: Sample) -> None:
        stopped.append(sample)
        usual(sample)

    monkeypatch.setattr(Sample, "stop", stop)
    monkeypatch.setattr(OutputWriter, "finish", lambda _: 1 / 0)
    world = World()
    world.add("a.json", '{{"id": "{}"}}')
    with pytest.raises(ZeroDivisionError):
        world.run()
    assert len(stopped) == 1


def test_no_more_than_two_stretches_are_held_however_slowly_they_are_read(monkeypatch) -> None:
    sample = Sample(Frame(), AUTO, everything=True, limits=WorkerLimits(stretch_sources=3))
    go_on = threading.Event()
    wait_before_comparing(monkeypatch, lambda: go_on.wait(60))

    def place() -> None:
        for number in range(9):
            placed(sample, number)

    placing = threading.Thread(target=place)
    placing.start()
    placing.join(0.2)
    assert placing.is_alive(), "a third stretch was taken"
    go_on.set()
    placing.join()
    assert not sample.differences()


def test_a_fault_in_the_middle_is_found_when_everything_is_read() -> None:
    rows = [b"id,text\n%d,ok\n" % n for n in range(40)]
    rows[20] = b'id,text\n20,"open'
    for how in ("sample", "all"):
        world = World(second_reading=how)
        for number, content in enumerate(rows):
            world.put(f"{number:03}.csv", content)
        with without_rules(headed=True):
            if how == "all":
                left = world.run().left_alone["records_differ"]
                assert "within a quoted field" in left.detail
            else:
                # One in forty, and not the one that the hash chose.
                assert world.run().status == "done"


def test_the_first_row_of_a_table_is_what_was_decided() -> None:
    contents = b"host,status\nweb,200\n", b"host,status\n", b"db,201\n"
    seen = [read(Reading(Kind.TABLE), (one,)) for one in contents]
    header = ("host", "status")
    for declared, expected in (
        (AUTO, None),
        (Declared(csv_header="present"), header),
        (Declared(csv_header="absent"), None),
        (Declared(table=TableDialect(",", header=True)), header),
        (Declared(csv_header="present", table=TableDialect(",", header=False)), None),
    ):
        assert header_of(seen, Reading(Kind.TABLE), declared) == expected


@pytest.mark.parametrize(
    ("headed", "kept"), [(True, b"x,y\n1,a\n1,b\n"), (False, b"x,y\n1,a\nx,y\n1,b\n")]
)
def test_an_output_that_is_not_as_was_decided_is_withheld(
    headed: bool, kept: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(**given: Any) -> World:
        world = World(**given)
        for name in "ab":
            world.put(f"{name}.csv", b"x,y\n1,%b\n" % name.encode())
        world.run()
        return world

    given = {"csv_header": "present" if headed else "absent"}
    world = run(**given)
    assert list(world.store.contents("lake", "compacted/").values()) == [kept]
    other = TableDialect(",", header=not headed)
    monkeypatch.setattr(compact, "table_of", lambda *_: other)
    withheld = run(**given)
    assert not withheld.store.contents("lake", "compacted/")


def test_an_output_that_does_not_keep_to_the_pin_is_withheld(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run() -> World:
        world = World()
        for number in range(4):
            world.put(f"{number}.csv", b"x,y\n%d,a\n%d,b\n" % (number, number + 10))
        world.run()
        return world

    def forgetful(settings: Settings, decide: Decide) -> Detector:
        def without_header(*asked: Any) -> Decision:
            decided = decide(*asked)
            return decided._replace(header=b"") if isinstance(decided, CsvDialect) else decided

        return detector(settings, without_header)

    assert len(run().store.contents("lake", "compacted/")) == 1
    monkeypatch.setattr(compact, "detector", forgetful)
    monkeypatch.setattr(CsvDialect, "row_fault", lambda *_: "")
    assert not run().store.contents("lake", "compacted/")
