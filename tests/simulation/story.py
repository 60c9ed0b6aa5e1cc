"""Prints a schedule as a readable story."""

from __future__ import annotations

import re

from tests.simulation.faults import Fault
from tests.simulation.ledger import LAKE
from tests.support.examples import PARTITION
from tests.support.memory_store import Call

_VERBS = {
    "list_objects": "lists",
    "list_level": "lists one level of",
    "list_uploads": "lists the uploads for",
    "read_source": "reads",
    "get": "gets",
    "head": "looks at",
    "put": "writes",
    "create": "creates, if absent,",
    "create_upload": "begins an upload for",
    "upload_part": "stores a part for",
    "copy_part": "copies a part for",
    "complete_upload": "publishes",
    "abort_upload": "aborts its upload for",
    "delete_source": "deletes",
}
_PARTS = (
    (re.compile(r".*/commits/0*(\d+)\.json\.gz"), r"commit \1"),
    (re.compile(r".*/commits/0*(\d+)\.checkpoint\.json\.gz"), r"checkpoint \1"),
    (re.compile(r".*/commits/"), "the commit log"),
    (re.compile(r".*/cleaned/0*(\d+)\.json"), r"the record that commit \1 is cleaned up"),
    (re.compile(r".*/identity\.json"), "the marker of the log"),
    (re.compile(r".*/receipts/.*"), "its receipt"),
    (re.compile(r".*/clean-ups/.*"), "its receipt of clean-up"),
    (re.compile(r".*/compacted-([0-9a-f]{6})[0-9a-f]*(\.\S*)"), r"output \1…\2"),
)


def thing(bucket: str, key: str) -> str:
    """Return a short name for the object at a key."""
    if bucket != LAKE:
        return key.removeprefix(PARTITION.prefix) or "the source"
    for pattern, name in _PARTS:
        match = pattern.fullmatch(key)
        if match is not None:
            return match.expand(name)
    return key


def told(who: str, call: Call, fault: Fault) -> str:
    """Return a line about one request."""
    line = f"{who} {_VERBS.get(call.name, call.name)} {thing(call.bucket, call.key)}"
    return line if fault is Fault.NONE else f"{line}   <-- {fault}"
