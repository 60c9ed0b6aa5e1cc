"""Each rule that leaves sources alone or keeps them apart: what a reader loses without it.

Nothing here looks at manifests, counts or verdicts. A reader of the format reads sources and
outputs, and the second reading, which would withhold what is wrong, is off.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from compactor.formats import cloudfront, columns, json_lines, log_lines
from compactor.formats.first_record import FirstRecord
from compactor.outputs.headers import HeaderCase
from tests.support.world import World

Reader = Callable[[bytes], list[Any]]


def rows(body: bytes) -> list[Any]:
    """Of CSV without a header."""
    return [tuple(row) for row in csv.reader(io.StringIO(body.decode(), newline="")) if row]


def document(body: bytes) -> list[Any]:
    """The one JSON value of an object; what is none is told as it is."""
    try:
        return [json.dumps(json.loads(body), sort_keys=True)]
    except ValueError:
        return [body]


def whole(body: bytes) -> list[Any]:
    """One document to an object."""
    return [body.strip()]


def w3c(body: bytes) -> list[Any]:
    """Rows with the names that the #Fields: line above them gives."""
    names: list[bytes] = []
    found: list[Any] = []
    for line in body.splitlines():
        if line.startswith(b"#Fields:"):
            names = line.split()[1:]
        elif line and not line.startswith(b"#"):
            found.append(tuple(zip(names, line.split(), strict=False)))
    return found


class Guard(NamedTuple):
    """A rule, what takes it out, and sources of which a reader then sees something else."""

    rule: str
    without: Callable[[pytest.MonkeyPatch], None]
    sources: dict[str, bytes]
    reader: Reader


def _first_line_is_a_header(patch: pytest.MonkeyPatch) -> None:
    def header(head: bytes, *_: object, **__: object) -> FirstRecord:
        return FirstRecord(head.partition(b"\n")[0])

    patch.setattr(columns, "first_record", header)


def _nothing_is_confirmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HeaderCase, "left_alone", lambda _: [])


def _no_quote_is_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(columns, "ends_within_quotes", lambda *_: False)


def _any_text_is_a_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_lines, "form_of", lambda _: len(log_lines._STRUCTURED))
    patch.setattr(log_lines, "refuse_other_lines", lambda *_, **__: None)


def _any_other_line_is_a_logs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_lines, "refuse_other_lines", lambda *_, **__: None)


def _any_json_is_lines(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_lines, "is_object", lambda _: True)
    patch.setattr(json_lines, "are_json_lines", lambda _: True)


def _no_json_is_a_document(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_lines, "document_in", lambda _: "")


def _fields_may_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cloudfront, "_refuse_other_comments", lambda *_: None)


GUARDS = (
    Guard(
        "a first row that may be one is no header",
        _first_line_is_a_header,
        {
            "a.csv": b"10.0.0.1,GET,/health\n10.0.0.1,GET,/a\n",
            "b.csv": b"10.0.0.1,GET,/health\n10.0.0.2,GET,/b\n",
        },
        rows,
    ),
    Guard(
        "sources confirm each other's header",
        _nothing_is_confirmed,
        {"a.csv": b"x,y\n1,a\n2,b\n", "b.csv": b"x,y\nc,3\nd,4\n"},
        rows,
    ),
    Guard(
        "a source that ends within quotes is not joined",
        _no_quote_is_open,
        {"a.csv": b'10.0.0.1,5" disk\n10.0.0.2,"cut off', "b.csv": b"10.0.0.3,ok\n"},
        rows,
    ),
    Guard(
        "text is joined only when it is a log's",
        _any_text_is_a_log,
        {"a.log": b"<a>\n <b/>\n</a>\n", "b.log": b"<a/>\n"},
        whole,
    ),
    Guard(
        "every line looked at is a log's",
        _any_other_line_is_a_logs,
        {
            "a.log": b"2026-01-31 12:00:00 \nDear diary\nI wrote.\n",
            "b.log": b"2026-02-01 12:00:00 \nDear diary\n",
        },
        whole,
    ),
    Guard(
        "every line of JSON lines is an object",
        _any_json_is_lines,
        {"a.json": b'{\n "a": 1\n}\n', "b.json": b'{\n "a": 2\n}\n'},
        document,
    ),
    Guard(
        "a document on one line is no line",
        _no_json_is_a_document,
        {
            "a.json": b'{"type":"FeatureCollection","features":[]}',
            "b.json": b'{"type":"FeatureCollection","features":[1]}',
        },
        document,
    ),
    Guard(
        "a comment line below #Fields: says the same",
        _fields_may_change,
        {
            "a": b"#Version: 1.0\n#Fields: date a\n2026-01-01 1\n#Fields: date b\n2026-01-01 2\n",
            "b": b"#Version: 1.0\n#Fields: date a\n2026-01-02 3\n",
        },
        w3c,
    ),
)


def seen(world: World, guard: Guard) -> Counter[Any]:
    """What the reader finds in the outputs, and in the sources that are in none of them."""
    outputs = world.store.contents("lake", "compacted/").values()
    found = Counter(record for body in outputs for record in guard.reader(body))
    for body in guard.sources.values():
        # The bytes of what was joined stand in an output, but for a line that was taken out.
        pieces = [line for line in body.split(b"\n") if line.strip()][1:]
        if not any(all(one in output for one in pieces) for output in outputs):
            found.update(guard.reader(body))
    return found


def compacted(guard: Guard) -> World:
    world = World(second_reading="none")
    for name, body in guard.sources.items():
        world.put(name, body)
    world.run()
    return world


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.rule)
def test_a_reader_sees_what_the_sources_hold_and_would_not_without_the_rule(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Counter(record for body in guard.sources.values() for record in guard.reader(body))
    assert seen(compacted(guard), guard) == held
    with monkeypatch.context() as patch:
        guard.without(patch)
        assert seen(compacted(guard), guard) != held
