"""Documents with one list and fields beside it: spliced where the fields agree, else left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import UnreadableSource
from compactor.formats import detect, framer_for
from compactor.formats.spec import Detected
from compactor.model import Compression, Format
from compactor_cli.commands import verify
from tests.support.world import World
from tests.unit.test_formats_cloudtrail import layouts, records
from tests.unit.test_formats_json_arrays import join

BOM = b"\xef\xbb\xbf"


def found_in(content: bytes, key: str = "a.json") -> Detected:
    found = detect(content, key, complete=True)
    assert found is not None
    return found


def config(items: list[object], **others: object) -> bytes:
    return json.dumps(
        {"fileVersion": "1.0", **others, "configurationItems": items}, indent=1
    ).encode()


@given(sources=st.lists(st.tuples(records, layouts), min_size=1, max_size=4))
def test_documents_of_equal_fields_become_one_and_each_is_given_back_byte_for_byte(sources):
    written = [
        json.dumps({"fileVersion": "1.0", "configurationItems": found}, **layout).encode()
        for found, layout in sources
    ]
    # As the header stands in the signature; a document on one line is a line of JSON lines.
    header = b'{"fileVersion":"1.0","configurationItems":[]}'
    signature = Detected(Format.JSON_LIST, header).signature(Compression.NONE)
    output, made = join(framer_for(signature), written)
    document = json.loads(output)
    assert document.pop("configurationItems") == [one for found, _ in sources for one in found]
    assert document == {"fileVersion": "1.0"}
    assert [one.records for one in made] == [len(found) for found, _ in sources]


@pytest.mark.parametrize(
    ("content", "header"),
    [
        (config([{"a": 1}]), b'{"fileVersion":"1.0","configurationItems":[]}'),
        (BOM + config([{"a": "]}"}]), b'{"fileVersion":"1.0","configurationItems":[]}'),
        (b'{\n"Findings" : [{"Id":1}]}\n', b'{"Findings":[]}'),
        (
            b'{"Records":[{"Data":"]"}] , "MillisBehindLatest" : 0}',
            b'{"Records":[],"MillisBehindLatest":0}',
        ),
        (
            b'{\n"owner":"\\"logEvents\\":[]","subscriptionFilters":["a" , ""],"logEvents":[{}]}',
            b'{"owner":"\\"logEvents\\":[]","subscriptionFilters":["a" , ""],"logEvents":[]}',
        ),
        (
            b'{\n"logEvents":[{"a":"\\ud800"}],"owner":"\\ud800"}',
            b'{"logEvents":[],"owner":"\\ud800"}',
        ),
    ],
)
def test_fields_beside_the_list_are_the_header_of_the_signature(content, header):
    assert found_in(content) == Detected(Format.JSON_LIST, header)
    framer = framer_for(found_in(content).signature(Compression.NONE))
    output, made = join(framer, [content, content])
    assert json.loads(output)
    assert [one.records for one in made] == [1, 1]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (config([{}], configSnapshotId="x"), "configSnapshotId"),
        (b'{"Records":[{}],"NextShardIterator":"x"}', "NextShardIterator"),
        (b'{\n"NextToken":"x","Findings":[{}]}', "NextToken"),
    ],
)
def test_a_document_with_another_field_is_left_alone_and_the_field_is_named(content, named):
    with pytest.raises(UnreadableSource, match=f"beside .* it has '{named}', which would be lost"):
        framer_for(found_in(content).signature(Compression.NONE)).frame(content)


@pytest.mark.parametrize(
    "content",
    [
        config([1]),
        config([[{}]]),
        config([{}]) + b"x",
        config([{}])[:-3],
        config([{}]) + config([{}]),
        config([{}]).replace(b'"1.0"', b'{"a":1}'),
        b'{\n"Findings":[{}],"Findings":[{}]}',
        b'{\n"findings":[{}],"Findings":[{}]}',
        b'{\n"items":[{}]}',
    ],
)
def test_anything_else_is_no_such_document(content):
    with pytest.raises(UnreadableSource):
        framer_for(found_in(content).signature(Compression.NONE)).frame(content)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"fileVersion":"1.0","configurationItems":[{}]}', Format.JSON_LINES),
        (b'{"Records":[{}]}', Format.CLOUDTRAIL),
        (b'{\n "Records": [{}]\n}\n', Format.CLOUDTRAIL),
        (b'{\n "Records": []\n}\n', Format.CLOUDTRAIL),
        (b'{"Records":[{}],"MillisBehindLatest":0}\n{"Records":[{}]}\n', Format.JSON_LINES),
    ],
)
def test_what_was_joined_otherwise_is_joined_as_before(content, expected):
    assert found_in(content).format is expected


def test_a_run_joins_equal_fields_alone():
    world = World()
    for number in range(4):
        version = "1.0" if number < 2 else "1.3"
        items = [{"n": number}, {"n": [{}]}]
        body = json.dumps({"fileVersion": version, "configurationItems": items}, indent=2)
        world.put(f"{number}.json", body.encode())
    world.run()
    found = [json.loads(one) for one in world.store.contents("lake", "compacted/").values()]
    assert sorted(one["fileVersion"] for one in found) == ["1.0", "1.3"]
    assert [len(one["configurationItems"]) for one in found] == [4, 4]
    checked = verify.check(world.settings, world.store, sources=True, deep=True)
    assert (checked.findings, checked.deep) == ([], [])
