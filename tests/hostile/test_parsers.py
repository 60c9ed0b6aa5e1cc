"""Every parser, on noise, on documents of its own, and on those with bytes changed in them.

HYPOTHESIS_PROFILE=dev looks for more of them; ``python -m tests.hostile.fuzz`` for as long as one
likes.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.encoding.codecs import decompress_stream, detect_compression
from compactor.outputs.verify import check_commit
from compactor.s3.list_parser import page_of
from compactor.settings.fields import FIELDS
from tests.hostile import parsers, seeds
from tests.hostile.parsers import PARSERS
from tests.support.examples import ON_LINES, columns
from tests.support.records import Made
from tests.support.sources import Sources, given_back


@st.composite
def changed(draw: st.DrawFn, sound: bytes) -> bytes:
    """Some bytes of a sound document are other ones, gone, doubled, or cut off at the end."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        way = draw(st.integers(0, 4))
        if way == 0:
            data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
        elif way == 1:
            del data[at : at + draw(st.integers(1, 9))]
        elif way == 2:
            data[at:at] = draw(st.sampled_from(seeds.TOKENS) | st.binary(max_size=6))
        elif way == 3:
            data[at:at] = data[at : at + draw(st.integers(1, 60))]
        else:
            del data[at:]
    return bytes(data)


@pytest.mark.parametrize("name", PARSERS)
@given(noise=st.binary(max_size=200))
@example(noise=b"")
def test_noise_is_refused_or_read(name: str, noise: bytes) -> None:
    PARSERS[name](noise)


@pytest.mark.parametrize("name", PARSERS)
def test_sound_documents_are_read(name: str) -> None:
    for sound in seeds.SEEDS[name]:
        PARSERS[name](sound)


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_documents_with_changed_bytes_are_refused_or_read(name: str, data: st.DataObject) -> None:
    sound = data.draw(st.sampled_from(seeds.SEEDS[name]))
    PARSERS[name](data.draw(changed(sound)))


@pytest.mark.parametrize("name", ["log_entry", "checkpoint"])
@given(data=st.data())
def test_state_that_was_changed_before_it_was_packed_is_damage_or_sound(
    name: str, data: st.DataObject
) -> None:
    """Below the checksum of gzip, which would notice all of it."""
    sound = gzip.decompress(data.draw(st.sampled_from(seeds.SEEDS[name])))
    PARSERS[name](gzip.compress(data.draw(changed(sound)), 1, mtime=0))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@st.composite
def misplaced(draw: st.DrawFn, document: Any) -> Any:
    """A JSON document with one of its values replaced by another."""
    if isinstance(document, dict) and document and draw(st.integers(0, 9)):
        name = draw(st.sampled_from(sorted(document)))
        return {**document, name: draw(misplaced(document[name]))}
    if isinstance(document, list) and document and draw(st.integers(0, 9)):
        at = draw(st.integers(0, len(document) - 1))
        return [*document[:at], draw(misplaced(document[at])), *document[at + 1 :]]
    return draw(JSON_VALUES)


@pytest.mark.parametrize("name", ["log_entry", "checkpoint"])
@given(data=st.data())
def test_state_with_values_of_other_kinds_is_damage_or_sound(
    name: str, data: st.DataObject
) -> None:
    sound = json.loads(gzip.decompress(data.draw(st.sampled_from(seeds.SEEDS[name]))))
    wrong = json.dumps(data.draw(misplaced(sound))).encode()
    PARSERS[name](gzip.compress(wrong, 1, mtime=0))


@given(st.dictionaries(st.sampled_from([*FIELDS]) | st.text(max_size=5), JSON_VALUES))
@example({"delete_after": "9" * 18 + "w"})
@example({"s3_source_uri": "s3://bucket/\ud800"})
def test_any_input_is_accepted_or_refused_by_field(given_: dict[str, Any]) -> None:
    parsers.input_fields(given_)
    uris = {"s3_source_uri": "s3://a-bucket/a/", "s3_destination_uri": "s3://a-bucket/b/"}
    parsers.input_fields({**uris, **given_})
    for name, value in given_.items():
        parsers.input_fields({**uris, name: value})


@given(JSON_VALUES)
def test_input_that_is_no_object_is_refused(given_: Any) -> None:
    parsers.input_fields(given_)


XML_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\ufffe\uffff").filter(
        lambda one: one >= " " or one in "\t\n"
    )
)


@given(st.lists(XML_TEXT, max_size=4), st.booleans())
def test_keys_are_read_as_an_xml_parser_reads_them(keys: list[str], numbered: bool) -> None:
    def written(key: str) -> str:
        return "".join(f"&#{ord(one)};" for one in key) if numbered else escape(key)

    page = seeds.listing(*(written(key) for key in keys))
    assert [one.key for one in page_of(page, "bucket").objects] == keys
    parsers.listing(page)


@given(st.binary(max_size=400), st.integers(1, 5))
def test_what_is_compressed_in_any_members_or_frames_is_read(body: bytes, count: int) -> None:
    pieces = [body[n::count] for n in range(count)]
    for pack in (gzip.compress, zstandard.compress):
        stored = b"".join(map(pack, pieces))
        found = b"".join(decompress_stream((stored,), detect_compression(stored)))
        assert found == b"".join(pieces)
        parsers.compressed(stored)


# The whole worker.


@st.composite
def any_source(draw: st.DrawFn) -> tuple[str, bytes]:
    """Noise, or content with changed bytes, compressed by any means, under any name."""
    body = draw(st.binary(max_size=60) | st.sampled_from(seeds.CONTENTS).flatmap(changed))
    pack = draw(st.sampled_from(PACKERS))
    stored = pack(body)
    if draw(st.integers(0, 3)) == 0 and stored:
        stored = draw(changed(stored))
    return draw(st.sampled_from(NAMES)), stored


PACKERS: tuple[Callable[[bytes], bytes], ...] = (bytes, bytes, gzip.compress, zstandard.compress)
NAMES = (
    ".json",
    ".csv",
    ".tsv",
    ".log.gz",
    ".json.zst",
    "_CloudTrail_x.json.gz",
    "",
    "_vpcflowlogs_",
)


@given(
    st.lists(any_source(), min_size=1, max_size=6),
    st.sampled_from(["same", "none", "gzip", "zstd"]),
    st.sampled_from([columns(), ON_LINES]),
    st.integers(1, 200),
)
def test_whatever_a_partition_holds_is_given_back_exactly_or_left_alone(
    found: list[tuple[str, bytes]], compression: str, formats: list[dict], whole_bytes: int
) -> None:
    made = [Made(name, b"", stored, Counter()) for name, stored in found]
    in_pieces = {"whole_bytes": whole_bytes, "chunk_bytes": 7}
    options = {"compression": compression, "formats": formats}
    world = Sources(made, in_pieces, **options)
    receipt = world.run()
    assert receipt.status == "done"
    commits = world.commits()
    assert sum(check_commit(one, world.store) for one in commits) == receipt.counts.records
    given_ = given_back(world, *commits)
    assert given_ == {key: plain_of(world.made[key].stored) for key in given_}
    left = {one.source.key for commit in commits for one in commit.quarantined}
    assert not left & given_.keys()
    # Nothing was written for partitions in which nothing has any content.
    empty = {key for key, one in world.made.items() if not one.stored}
    assert left | given_.keys() | empty == world.made.keys()
    world.check_idle_again()


def plain_of(stored: bytes) -> bytes:
    """Decompressed by other means than the worker's."""
    if stored.startswith(b"\x1f\x8b\x08"):
        return gzip.decompress(stored)
    if stored.startswith(b"\x28\xb5\x2f\xfd") or stored[1:4] == b"\x2a\x4d\x18":
        with zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True) as reader:
            return reader.read()
    return stored
