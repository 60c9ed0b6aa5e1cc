"""A reader of the state written from docs/format.md alone, without any product code."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

STATES = Path(__file__).parents[1] / "state"
STATE = "_compactor/compacted/"
ENTRY = re.compile(r"(?P<path>.*/|)commits/(?P<number>\d{20})\.json\.gz", re.DOTALL)
Json = dict[str, Any]


# Quarantine reasons that docs/format.md marks with (p) and (s).
PASSING = {"archived_access_tier", "access_denied", "encrypted"}
BY_SETTINGS = {
    "unknown_format",
    "binary",
    "unknown_encoding",
    "open_end",
    "open_quote",
    "malformed_document",
}


def blake(size: int, data: str | bytes) -> bytes:
    raw = data.encode() if isinstance(data, str) else data
    return hashlib.blake2b(raw, digest_size=size).digest()


def identity(bucket: str, key: str, etag: str) -> bytes:
    return blake(10, f"{bucket}\0{key}") + blake(6, etag)


def group_id(settings: Json, sources: Sequence[tuple[str, str, str]], *, copied: bool) -> str:
    declared = declaration_of(settings, sources[0][1])
    options = ["1", compact_json(declared) if declared else "", settings["compression"]]
    options += ["True" if copied else "False"]
    if "parquet" in ((declared or {}).get("format"), settings["output_format"]):
        options += [settings["output_format"], settings["parquet_schema"] or ""]
    if settings["upsert_key"]:
        options += ["upsert"]
    identities = b"".join(identity(*one) for one in sources)
    return blake(16, "\0".join(options).encode() + identities).hex()


def declaration_of(settings: Json, key: str) -> Json | None:
    """Of a source in a bucket's root prefix, without its pattern."""
    for declared in settings["formats"]:
        if fnmatchcase(key, declared.get("match", "*")):
            return {name: value for name, value in declared.items() if name != "match"}
    return None


def compact_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def settings_name(settings: Json) -> str:
    return blake(8, compact_json(settings["formats"]) + "\0" + settings["output_format"]).hex()


def partition_id(path: str) -> str:
    safe = "".join(one if one.isalnum() or one in "=-_" else "-" for one in path.strip("/"))
    return f"{safe[-80:] or 'root'}-{blake(8, path).hex()}"


def restored(manifest: Json, number: int, plain: bytes) -> bytes:
    strings: list[bytes] = [bytes_of(one) for one in manifest["bytes"]]
    begin, length = int(manifest["offset"][number]), int(manifest["length"][number])
    piece = plain[begin : begin + length]
    prefix: int | None = manifest["prefix"][number]
    if prefix is None:
        return piece
    piece = piece[: length - manifest["appended"][number]]
    edits = manifest["edits"].get(str(number), [])
    for offset, size, string in reversed(edits):
        piece = piece[:offset] + strings[string] + piece[offset + size :]
    newline = manifest["newlines"][number]
    if newline is not None and not edits:
        piece = piece.replace(b"\n", strings[newline])
    suffix: int = manifest["suffix"][number]
    return strings[prefix] + piece + strings[suffix]


def bytes_of(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


class State:
    """The objects of the buckets, read from the archive."""

    def __init__(self) -> None:
        with zipfile.ZipFile(STATES / "1.zip") as archive:
            index = json.loads(archive.read("index.json"))
            self.bodies = {
                (one["bucket"], one["key"]): archive.read(one["body"]) for one in index["objects"]
            }
            self.originals = {
                (one["key"], one["etag"]): archive.read(one["body"]) for one in index["originals"]
            }
        self.listed = {
            (one["bucket"], one["key"]): {
                **one,
                "size": len(self.bodies[one["bucket"], one["key"]]),
            }
            for one in index["objects"]
        }

    def document(self, name: str) -> Any:
        body = self.bodies["lake", STATE + name]
        return json.loads(gzip.decompress(body) if name.endswith(".gz") else body)

    def names(self) -> Iterator[str]:
        return (key.removeprefix(STATE) for bucket, key in self.bodies if key.startswith(STATE))

    @cached_property
    def logs(self) -> Mapping[str, list[Json]]:
        """Return the entries of each partition, in order."""
        found: dict[str, list[Json]] = defaultdict(list)
        for name in sorted(self.names()):
            match = ENTRY.fullmatch(name.removeprefix("partitions/"))
            if name.startswith("partitions/") and match:
                entry = self.document(name)
                assert entry["sequence"] == int(match["number"]) == len(found[match["path"]]) + 1
                found[match["path"]].append(entry)
        return found

    def entries(self) -> Iterator[tuple[str, Json]]:
        return ((path, entry) for path, log in self.logs.items() for entry in log)


class Fold:
    """A checkpoint, computed from the entries before it."""

    def __init__(self) -> None:
        self.committed: set[bytes] = set()
        self.quarantined: dict[bytes, str] = {}
        self.passing: set[bytes] = set()
        self.outputs: set[bytes] = set()
        self.runs: dict[str, list[Json]] = {}
        # For all entries, including void ones.
        self.lines: dict[str, list[Json]] = defaultdict(list)
        self.entries: list[Json] = []

    def add(self, entry: Json) -> None:
        if entry["replaces"] is not None:
            self._void(self.entries[entry["replaces"] - 1])
        self.entries.append(entry)
        compacted = set(manifest_of(entry))
        self.committed |= compacted
        self.passing -= compacted
        if entry["output"] is not None:
            one = entry["output"]
            self.outputs.add(blake(16, f"{one['bucket']}\0{one['key']}"))
        self._leave_alone(entry)
        self.runs[entry["run_id"]] = [*self.runs.pop(entry["run_id"], []), entry]
        self.lines[entry["run_id"]] += [
            {"key": one[0], "reason": one[3], "detail": one[4]}
            for one in entry["quarantined"]
            if one[3] not in PASSING
        ]

    def _void(self, entry: Json) -> None:
        self.committed -= set(manifest_of(entry))
        self.runs[entry["run_id"]].remove(entry)

    def _leave_alone(self, entry: Json) -> None:
        for key, etag, _, reason, _ in entry["quarantined"]:
            one = identity(entry["source_bucket"], key, etag)
            if reason in PASSING:
                self.passing.add(one)
            else:
                self.quarantined[one] = entry["decided_by"] if reason in BY_SETTINGS else ""

    @property
    def document(self) -> Json:
        last = self.entries[-1]
        return {
            "version": 1,
            "through": last["sequence"],
            "log_id": last["log_id"],
            "committed": shown(self.committed),
            "quarantined": {
                name: shown({one for one, by in self.quarantined.items() if by == name})
                for name in self.quarantined.values()
            },
            "passing": shown(self.passing),
            "outputs": shown(self.outputs),
        }


def shown(digests: set[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(digests))).decode()


def manifest_of(entry: Json) -> list[bytes]:
    columns = entry["manifest"]
    pairs = zip(columns["key"], columns["etag"], strict=True)
    return [identity(entry["source_bucket"], key, etag) for key, etag in pairs]


def totals(entries: Sequence[Json]) -> Json:
    """Return the totals of a run that follow from its entries."""
    outputs = [one["output"] for one in entries if one["output"] is not None]
    left = [one for entry in entries for one in entry["quarantined"] if one[3] not in PASSING]
    before = [size for one in entries for size in one["manifest"]["size"]]
    return {
        "sources": len(before),
        "source_bytes": sum(before),
        "outputs": len(outputs),
        "output_bytes": sum(one["size"] for one in outputs),
        "records": sum(one["records"] or 0 for one in outputs),
        "copied": sum(one["copied"] for one in outputs),
        "quarantined": len(left),
        "quarantined_bytes": sum(one[2] for one in left),
        "sizes": {"before": by_bits(before), "after": by_bits([one["size"] for one in outputs])},
        "covered": covered(entries),
    }


def covered(entries: Sequence[Json]) -> Json:
    counts: dict[str, list[int]] = {}
    for number, objects, size in (one for entry in entries for one in entry["covered"]):
        before = counts.setdefault(str(number), [0, 0])
        before[0] += objects
        before[1] += size
    return counts


def by_bits(sizes: Sequence[int]) -> list[int]:
    counts = [0] * (max((size.bit_length() for size in sizes), default=-1) + 1)
    for size in sizes:
        counts[size.bit_length()] += 1
    return counts
