"""One JSON object a source: a line among its kind, or a document among others."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence

import pytest

from compactor.log.log import CommitLog
from compactor.outputs import neighbours
from tests.support.examples import PARTITION
from tests.support.memory_store import Call
from tests.support.world import World

EVENTS = tuple(b'{"id":%d,"at":1}' % n for n in range(6))
SETTINGS = (b'{"colour":"red"}', b'{"limits":{"cpu":1}}', b'{"hosts":["a"]}\n')


def joined(sources: Sequence[bytes], **given: object) -> tuple[set[int], set[int]]:
    """Which of these sources are in an output, and which were left alone."""
    world = World(**given)
    for number, body in enumerate(sources):
        world.put(f"{number:03}.json", body)
    assert world.run().status == "done"
    assert world.run().counts.objects_in == 0
    taken: list[int] = []
    left: list[int] = []
    for commit in CommitLog(world.store, world.settings, PARTITION).every_commit():
        taken += [_number(row.source.key) for row in commit.rows]
        left += [_number(one.source.key) for one in commit.quarantined]
        for one in commit.quarantined:
            assert one.detail.endswith('; set format: "json_lines"')
            assert "shares no member" in one.detail
    assert len(set(taken)) == len(taken)
    assert not set(taken) & set(left)
    assert {*taken, *left} == set(range(len(sources)))
    body = b"".join(world.store.contents("lake", "compacted/").values())
    read = [json.loads(line) for line in body.splitlines() if line.strip()]
    assert sorted(map(repr, read)) == sorted(
        repr(json.loads(line)) for n in taken for line in sources[n].splitlines() if line.strip()
    )
    return set(taken), set(left)


def _number(key: str) -> int:
    return int(key.removeprefix(PARTITION.prefix)[:3])


@pytest.mark.parametrize(
    ("sources", "left"),
    [
        (EVENTS, set()),
        (SETTINGS, {0, 1, 2}),
        # A document before, amid and after lines.
        ((SETTINGS[0], *EVENTS), {0}),
        ((*EVENTS[:3], SETTINGS[0], *EVENTS[3:]), {3}),
        ((*EVENTS, SETTINGS[0]), {6}),
        ((SETTINGS[0], EVENTS[0], SETTINGS[1], EVENTS[1], SETTINGS[2]), {0, 2, 4}),
        # Any member will do, wherever it stands, and whatever its value is.
        ((b'{"a":1,"b":2}', b'{"c":1,"b":[]}', b'{"d":{},"c":null}'), set()),
        # Kinds of events that come in turn are each other's neighbours.
        ((b'{"a":1}', b'{"b":1}', b'{"a":2}', b'{"b":2}'), set()),
        # Several lines are lines, and tell what members lines have.
        ((b'{"id":1}\n{"id":2}\n', *EVENTS), set()),
        ((b'{"x":1}\n{"x":2}\n', SETTINGS[0], b'{"y":1}\n{"y":2}\n'), {1}),
        ((SETTINGS[0], b'\n{"colour":1}\n{"x":2}\n'), set()),
        # What stands inside is no member of the object.
        ((b'{"a":{"k":1}}', b'{"b":{"k":1}}'), {0, 1}),
        # Nothing to compare with, and nothing to lose.
        ((SETTINGS[0],), set()),
        ((b"{}", b"{}", b"{}"), set()),
        ((b"{}", SETTINGS[0]), set()),
        ((b"", *EVENTS, b"", SETTINGS[0], b""), {8}),
        ((b"\xef\xbb\xbf" + EVENTS[0], EVENTS[1]), set()),
    ],
)
@pytest.mark.parametrize("waiting", [1, 2, 256])
def test_an_object_that_shares_no_member_with_any_other_is_left_alone(
    sources, left, waiting, monkeypatch
):
    if waiting < 256:
        # Whoever waits for fewer leaves more alone.
        monkeypatch.setattr(neighbours, "_MOST_WAITING", waiting + 1)
        assert joined(sources)[1] >= left
        return
    assert joined(sources)[1] == left
    assert joined(sources, format="json_lines")[1] == set()


def test_of_documents_among_many_events_only_these_are_left_alone():
    sources = [b'{"at":%d,"kind":"a"}' % n for n in range(600)]
    documents = {n: b'{"own%d":1}' % n for n in range(0, 600, 50)}
    for n, body in documents.items():
        sources[n] = body
    assert joined(sources)[1] == set(documents)


@pytest.mark.parametrize("waiting_bytes", [1, 40, 100])
def test_what_waits_is_bounded_in_bytes(waiting_bytes, monkeypatch):
    monkeypatch.setattr(neighbours, "_MOST_WAITING_BYTES", waiting_bytes)
    sources = (EVENTS[0], *SETTINGS, EVENTS[1], SETTINGS[0].replace(b"colour", b"other"))
    assert {1, 2, 3, 5} <= joined(sources)[1]


def test_a_declared_format_is_not_questioned():
    assert joined(SETTINGS, format="json_lines") == ({0, 1, 2}, set())


def test_other_formats_wait_in_their_order_after_an_object_that_does():
    world = World()
    world.put("0.json", SETTINGS[0])
    world.put("1.json", b'{"Records":[{"a":1}]}')
    world.put("2.json", b'[{"a":1}]')
    world.put("3.json", b'{"a":1}{"a":2}')
    world.put("4.json", EVENTS[0])
    world.put("5.json", EVENTS[1])
    world.put("6.json", b'{"Records":[{"a":2}]}')
    world.put("7.json", gzip.compress(EVENTS[2]))
    assert world.run().status == "done"
    log = CommitLog(world.store, world.settings, PARTITION)
    left = [q.source.key[-6:] for one in log.every_commit() for q in one.quarantined]
    assert left == ["0.json"]
    assert len(world.store.contents("lake", "compacted/")) == 5


def test_an_output_that_was_lost_is_built_again_without_them():
    world = World()
    for number, body in enumerate((SETTINGS[0], EVENTS[0], SETTINGS[1], EVENTS[1])):
        world.put(f"{number}.json", body)

    def lose(call: Call) -> None:
        if call.name == "complete_upload":
            world.store.hooks.clear()
            for upload, key in world.store.unfinished_uploads("lake").items():
                world.store.abort_upload("lake", key, upload)

    world.store.hooks.before.append(lose)
    world.run()
    (output,) = world.store.contents("lake", "compacted/").values()
    assert output == EVENTS[0] + b"\n" + EVENTS[1] + b"\n"
