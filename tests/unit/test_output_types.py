from __future__ import annotations

import pytest

from tests.support.world import World


@pytest.mark.parametrize(
    ("name", "packed", "media_type"),
    [
        ("a.json", False, "application/x-ndjson"),
        ("a.json.gz", True, "application/gzip"),
        ("a.csv", False, "text/csv"),
        ("a.log", False, "text/plain"),
    ],
)
def test_an_output_is_stored_with_its_media_type(name, packed, media_type) -> None:
    world = World()
    contents = {"json": b'{"id": 1}\n', "csv": b"id,name\n1,x\n", "log": b"2026-01-31 12:00:00 x\n"}
    world.put(name, contents[name.split(".")[1]], packed=packed)
    world.run()
    outputs = [
        one
        for key, one in world.store._buckets["lake"].objects.items()
        if key.startswith("compacted/")
    ]
    assert [one.content_type for one in outputs] == [media_type]
