"""What a worker makes of one hostile source among sound ones: compacted exactly, or left alone.

Both ways everything is checked: records, checksums, restore, and that a second run finds
nothing to do.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from compactor.model import QuarantineReason
from tests.support.records import Made, read_object
from tests.support.sources import Sources, of


def compacted(name: str, stored: bytes, plain: bytes | None = None, **given: Any) -> Sources:
    """The source is compacted, and given back as ``plain`` (as stored, unless that is given)."""
    content = stored if plain is None else plain
    world = Sources(_among(Made(name, content, stored, read_object(name, content))), **given)
    world.check_everything()
    assert not [one for commit in world.commits() for one in commit.quarantined]
    return world


def quarantined(name: str, stored: bytes, **given: Any) -> QuarantineReason:
    """The source is left alone for this reason, and nothing else is."""
    world = Sources(_among(Made(name, b"", stored, Counter(), damaged=True)), **given)
    world.check_everything()
    (line,) = (one for commit in world.commits() for one in commit.quarantined)
    assert line.detail.isprintable(), "a reason is one line that any terminal may show"
    assert len(line.detail) < 400
    return line.reason


def _among(hostile: Made) -> list[Made]:
    """Sound sources that would share its output, before it and behind it: enough for a header."""
    beside = of(hostile.name, _BESIDE[_kind(hostile.name)])
    return [beside, hostile, beside, beside]


def _kind(name: str) -> str:
    return next(kind for kind in _BESIDE if kind in name)


_BESIDE = {
    "_CloudTrail_": b'{"Records":[{"beside":1}]}',
    ".csv": b"id,name\nbeside,1\n",
    ".json": b'{"beside":1}\n',
    ".log": b"2026-01-02 03:04:05 beside\n",
}
