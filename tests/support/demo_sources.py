"""Sources that a run frames differently, with the same records for an engine."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.support.world import World

TRAIL = [{"eventID": f"{one}", "size": 1.10} for one in range(4)]
FLOWS = b"version account-id interface-id srcaddr dstaddr\n"
SAME_RECORDS_OTHERWISE = {
    "json values without anything between them": (
        {"a": b'{"a":1}{"a":2}', "b": b'{"a": 3}{"a": 4}'},
        4,
    ),
    "json arrays": ({"a.json": b'[{"a":1},\n{"a":2}]', "b.json": b'[{"a":3}]'}, 3),
    "cloudtrail documents": (
        {
            "a.json.gz": gzip.compress(json.dumps({"Records": TRAIL[:1]}).encode(), mtime=0),
            "b.json.gz": gzip.compress(json.dumps({"Records": TRAIL[1:]}).encode(), mtime=0),
        },
        4,
    ),
    "tables with a header in each": (
        {"a.csv": b"id,n\nx,1\n", "b.csv": b"id,n\ny,2\nz,3", "c.csv": b"id,n\nw,4\n"},
        4,
    ),
    "flow logs with a header in each": (
        {
            "a.log": FLOWS + b"2 123456789010 eni-1 10.0.0.1 10.0.0.2\n",
            "b.log": FLOWS + b"2 123456789010 eni-1 10.0.0.3 10.0.0.4\n",
        },
        2,
    ),
    "lines with other ends": (
        {
            "a.log": b"2026-01-02T03:04:05Z one\r\n2026-01-02T03:04:05Z two\r\n",
            "b.log": b"2026-01-02T03:04:05Z three\n\n2026-01-02T03:04:06Z four",
        },
        5,
    ),
}


def compacted(sources: dict[str, bytes]) -> World:
    """Return a world with these sources after one run."""
    world = World()
    for name, body in sources.items():
        world.put(name, body)
    assert world.run().status == "done"
    return world


def rewrite(world: World, old: bytes, new: bytes) -> None:
    """Overwrite the one output that contains some bytes, replacing them."""
    for key, body in world.store.contents("lake", "compacted/").items():
        if old in body:
            world.store.seed("lake", key, body.replace(old, new))
            return
    pytest.fail(f"no output holds {old!r}")
