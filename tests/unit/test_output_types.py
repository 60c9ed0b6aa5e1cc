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
    world.put(name, b'{"id": 1}\n' if "json" in name else b"id,name\n1,x\n", packed=packed)
    world.run()
    outputs = [
        one
        for key, one in world.store._buckets["lake"].objects.items()
        if key.startswith("compacted/")
    ]
    assert [one.content_type for one in outputs] == [media_type]
