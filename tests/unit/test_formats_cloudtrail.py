"""CloudTrail documents: spliced, proven, given back; anything else refused."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.errors import UnreadableSource
from compactor.formats import detect, framer_for
from compactor.formats.framing import Framed, Framer
from compactor.log.manifest import restore_slice
from compactor.model import Compression, Format, QuarantineReason, Signature
from tests.support.examples import TOO_DEEP
from tests.support.framing import facts_of

REAL = Path(__file__).parents[3] / "shared" / "data" / "cloudtrail"
TRAIL = Signature(Format.CLOUDTRAIL, Compression.GZIP)
BOM = b"\xef\xbb\xbf"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
records = st.lists(st.dictionaries(st.text(max_size=3), json_values, max_size=3), max_size=4)
layouts = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, None, 0, 2, "\t"]),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (" , ", ":")]),
        "ensure_ascii": st.booleans(),
    }
)
blanks = st.text(" \t\r\n", max_size=3)


def framer(output: str) -> Framer:
    return framer_for(TRAIL, lines=output == "lines")


def join(target: Framer, sources: list[bytes]) -> tuple[bytes, list[Framed]]:
    output, placed = target.opening(), []
    for content in sources:
        framed = target.frame(content)
        piece = b"".join(framed.slice)
        assert restore_slice(piece, facts_of(framed)) == content
        output += framed.separator + piece
        placed.append(framed)
    return output + target.closing(), placed


def as_seen(output: bytes, kind: str) -> list[object]:
    """The records as an independent reader of that output sees them."""
    if kind == "lines":
        return [json.loads(line) for line in output.split(b"\n")[:-1]]
    document = json.loads(output)
    assert list(document) == ["Records"]
    return list(document["Records"])


@pytest.mark.parametrize("output", ["document", "lines"])
@given(st.lists(st.tuples(records, layouts, blanks, st.booleans()), max_size=5))
@settings(max_examples=120, deadline=None)
def test_every_record_is_in_one_valid_output_and_every_source_comes_back(
    output: str, sources: list[tuple[list[dict], dict, str, bool]]
) -> None:
    contents = [
        (BOM if bom else b"")
        + f"{around}{json.dumps({'Records': found}, **layout)}{around}".encode()
        for found, layout, around, bom in sources
    ]
    joined, framed = join(framer(output), contents)
    expected = [record for found, *_ in sources for record in found]
    assert as_seen(joined, output) == expected
    assert [f.records for f in framed] == [len(found) for found, *_ in sources]


@pytest.mark.parametrize("output", ["document", "lines"])
def test_real_objects_are_joined_without_losing_or_changing_a_record(output: str) -> None:
    paths = sorted(path for path in REAL.rglob("*.json.gz"))
    if not paths:
        pytest.skip(f"no CloudTrail objects below {REAL}")
    sources = [gzip.decompress(path.read_bytes()) for path in paths]
    for path, content in zip(paths, sources, strict=True):
        detected = detect(content[:65_536], path.name, complete=False)
        assert detected is not None
        assert detected.signature(Compression.GZIP) == TRAIL
    joined, framed = join(framer(output), sources)
    before = Counter(
        json.dumps(record, sort_keys=True)
        for content in sources
        for record in json.loads(content)["Records"]
    )
    after = Counter(json.dumps(record, sort_keys=True) for record in as_seen(joined, output))
    assert after == before
    assert sum(f.records for f in framed) == before.total() > 0


def test_records_keep_their_very_bytes_in_a_document() -> None:
    odd = b'{"big": 123456789012345678901234567890, "f": 1.10,\n "e": "\\u00e9\\/"}'
    joined, _ = join(framer("document"), [b'{"Records":[' + odd + b"]}\n", b'{"Records": []}'])
    assert joined == b'{"Records":[' + odd + b"]}"


def test_commas_alone_between_records_cost_no_edits() -> None:
    (framed,) = join(framer("lines"), [b'{"Records":[{"a":1},{"a":2},{"a":3}]}\n'])[1]
    assert framed.newlines_stand_for == b","
    assert not framed.edits
    (framed,) = join(framer("lines"), [b'{"Records":[{"a":\n1}, {"a":2}]}'])[1]
    assert framed.newlines_stand_for is None
    assert b"".join(framed.slice) == b'{"a":1}\n{"a":2}\n'


def test_half_a_surrogate_pair_is_valid_json_and_passes_unchanged() -> None:
    content = b'{"Records":[{"name":"cut \\ud83d"},{"path":"c:\\\\ud83d"}]}'
    for output in ("document", "lines"):
        joined, _ = join(framer(output), [content])
        assert len(as_seen(joined, output)) == 2
        assert b"\\ud83d" in joined


@pytest.mark.parametrize(
    "content",
    [
        b'{"Records":[{"a":1}],"extra":1}',
        b'{"extra":1,"Records":[{"a":1}]}',
        b'{"Records":[{"a":1}],"Records":[{"b":1}]}',
        b'{"Records":[{"a":1}]}{"Records":[{"b":1}]}',
        b'{"Records":[{"a":1}]}\n{"Records":[{"b":1}]}',
        b'{"Records":{"a":1}}',
        b'{"Records":[{"a":1},]}',
        b'{"Records":[{"a":1}{"a":2}]}',
        b'{"Records":[{"a":"raw\nnewline"}]}',
        b'{"Records":[{"a":"bad \\x escape"}]}',
        b'{"Records":[{"a":"\xff"}]}',
        b'{"Records":[{"a":NaN}]}',
        b'{"Records":[1,2]}',
        b'{"Records":[null]}',
        b'{"Records":[[{"a":1}]]}',
        b'{"Records":null}',
        b'[{"a":1}]',
        b'{"records":[{"a":1}]}',
        b'{"Records":[{"a":1}]} trailing',
        b'{"Records":[{"a":' + b"[" * TOO_DEEP + b"]" * TOO_DEEP + b"}]}",
        b'{"Records":[{"a":' + b'{"a":' * TOO_DEEP + b"1" + b"}" * TOO_DEEP + b"}]}",
        b"not json",
        b"]}",
    ],
)
@pytest.mark.parametrize("output", ["document", "lines"])
def test_anything_but_exactly_one_document_of_records_is_refused(
    content: bytes, output: str
) -> None:
    target = framer(output)
    with pytest.raises(UnreadableSource) as caught:
        target.frame(content)
    assert caught.value.reason == QuarantineReason.MALFORMED


@pytest.mark.parametrize(
    "content",
    [
        b'{"Records":[{"a":1}]',
        b'{"Records":[{"a":1}',
        b'{"Records":[{"a":"cut off her',
        b'{"Records":[{"a":"}]}',
        b'{"Records":[' + b"[" * 100_000,
        b"{",
    ],
)
@pytest.mark.parametrize("output", ["document", "lines"])
def test_a_document_that_is_still_open_at_its_end_is_refused(content: bytes, output: str) -> None:
    with pytest.raises(UnreadableSource) as caught:
        framer(output).frame(content)
    assert caught.value.reason == QuarantineReason.OPEN_END


def test_the_reason_names_what_a_document_has_beside_its_records() -> None:
    for content in (
        b'{"Records":[{"a":1}],"MillisBehindLatest":0}',
        b'{"MillisBehindLatest":0,\n"Records":[{"a":1}]}',
    ):
        with pytest.raises(UnreadableSource, match="it has 'MillisBehindLatest'") as caught:
            framer("document").frame(content)
        assert caught.value.reason == QuarantineReason.MALFORMED


def test_a_document_whose_names_are_not_utf_8_is_refused_like_any_other() -> None:
    for content in (b'{"\xff\xff":"}{"}', b'{"Records":[{"a":1}],"\xff":0}'):
        with pytest.raises(UnreadableSource) as caught:
            framer("document").frame(content)
        assert caught.value.reason == QuarantineReason.MALFORMED


def test_a_refused_source_leaves_the_output_as_it_was() -> None:
    target = framer("document")
    sources = [b'{"Records":[{"a":1}]}', b'{"Records":[{"a":2}]}']
    with pytest.raises(UnreadableSource):
        target.frame(b'{"Records":[1]}')
    first = target.frame(sources[0])
    with pytest.raises(UnreadableSource):
        target.frame(b'{"Records":[1]}')
    second = target.frame(sources[1])
    assert (first.separator, second.separator) == (b"", b",")


def test_sources_without_records_leave_no_comma() -> None:
    empty = [b'{"Records":[]}', b"", b" \n", BOM, b'{ "Records" : [ \n ] }']
    sources = [*empty, b'{"Records":[{"a":1}]}', *empty, b'{"Records":[{"a":2}]}', *empty]
    joined, _ = join(framer("document"), sources)
    assert joined == b'{"Records":[{"a":1},{"a":2}]}'
    assert join(framer("document"), empty)[0] == b'{"Records":[]}'
    assert join(framer("lines"), sources)[0] == b'{"a":1}\n{"a":2}\n'


def test_long_runs_of_blanks_take_linear_time() -> None:
    spaces = b" " * 1_000_000
    content = b'{"Records":[{"a":"' + spaces + b'"},' + spaces + b'{"b":' + spaces + b"1}\n]}"
    for output in ("document", "lines"):
        assert len(as_seen(join(framer(output), [content])[0], output)) == 2
