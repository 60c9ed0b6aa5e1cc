"""The proof: every record of every source is in exactly one output.

Nothing here trusts the compactor: objects are listed and read with plain boto3, records are parsed
by :mod:`tests.support.foreign_records`, and only the names of sources and outputs are taken from
the commit logs, with separate code. For each output, the multiset of records in its sources is
compared with the multiset of records in the output.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import zstandard

from compactor.settings.uris import S3Uri
from compactor.sizes import plural
from tests.support.foreign_records import Reader, plain_text

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_READERS = 8
_ENTRY = re.compile(r"(.*)commits/(\d{20})\.json\.gz", re.DOTALL)
_SHOWN_KEYS = 3


@dataclass(frozen=True, slots=True)
class Places:
    """Where sources, outputs and state are."""

    source: S3Uri
    destination: S3Uri
    state: S3Uri


@dataclass(slots=True)
class Proof:
    """The result of the audit.

    Attributes:
        sources: existing sources that commits name.
        left_alone: source objects without a commit.
        outputs: objects below the data prefix.
        records: records in the sources.
        matched: records that are in the outputs exactly as often as in the sources.
        findings: one line per fault.
    """

    sources: int = 0
    left_alone: int = 0
    outputs: int = 0
    records: int = 0
    matched: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether there are no findings, and at least one source."""
        return not self.findings and self.matched == self.records and self.sources > 0

    @property
    def line(self) -> str:
        """The result in one line."""
        text = (
            f"{self.matched:,} of {plural(self.records, 'record')} of"
            f" {plural(self.sources, 'source')} are in exactly one of"
            f" {plural(self.outputs, 'output')}"
        )
        return f"proof: {text}" if self.holds else f"NOT PROVEN: {text}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "holds": self.holds,
            "line": self.line,
            "sources": self.sources,
            "left_alone": self.left_alone,
            "outputs": self.outputs,
            "records": self.records,
            "matched": self.matched,
            "findings": self.findings,
        }


@dataclass(slots=True)
class _Named:
    """What the commit logs name.

    Attributes:
        sources: (key, ETag) of the source -> key of the output, or None.
        outputs: keys of the outputs.
    """

    sources: dict[tuple[str, str], str | None] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)


def audit(
    places: Places, client: S3Client, on_read: Callable[[int, int], None] | None = None
) -> Proof:
    """Read everything again and compare.

    Memory: the sources of one output, and a digest of each of their records.

    Args:
        places: where to look.
        client: plain boto3.
        on_read: called with the number of objects read, and the total.
    """
    proof = Proof()
    named = _named(places, client, proof)
    listed = dict(_listed(places.source, client))
    sources = {key: out for (key, tag), out in named.sources.items() if listed.get(key) == tag}
    outputs = dict(_listed(places.destination, client))
    proof.sources, proof.left_alone = len(sources), len(listed) - len(sources)
    proof.outputs = len(outputs)
    _compare_names(named, sources, outputs, proof)
    known = named.outputs & outputs.keys()
    reader = _Bodies(client, on_read, len(sources) + len(known))
    by_output: dict[str | None, list[str]] = {None: [], **{key: [] for key in known}}
    for key, output in sources.items():
        by_output.setdefault(output, []).append(key)
    with ThreadPoolExecutor(_READERS) as pool:
        for output, keys in by_output.items():
            texts = reader.texts(pool, places.source.bucket, keys)
            joined = None
            if output is not None and output in known:
                (joined,) = reader.texts(pool, places.destination.bucket, [output])
            _compare(output, texts, joined, proof)
    return proof


def _compare(
    output: str | None, sources: Sequence[_Text], joined: _Text | None, proof: Proof
) -> None:
    """Compare the records of one output with those of its sources."""
    unreadable = [one.fault for one in (*sources, *filter(None, (joined,))) if one.fault]
    proof.findings += unreadable
    reader = Reader([(one.key, one.text) for one in sources])
    before = Counter(_digest(record) for one in sources for record in reader.source(one.text))
    after = Counter(_digest(record) for record in reader.output(joined.text if joined else ""))
    proof.records += before.total()
    proof.matched += sum(count for digest, count in before.items() if after[digest] == count)
    for text, lost in (("lost", before - after), ("doubled or new", after - before)):
        if lost:
            proof.findings.append(f"{lost.total():,} records are {text} in {output}")
    if reader.doubt and len(sources) > 1:
        proof.findings.append(f"{output}: {reader.doubt}")


def _compare_names(
    named: _Named, sources: Mapping[str, str | None], outputs: Mapping[str, str], proof: Proof
) -> None:
    gone = [key for key, _ in named.sources if key not in sources]
    _find(proof, "missing or changed sources that commits name", gone)
    _find(proof, "missing outputs that commits name", named.outputs - outputs.keys())
    _find(proof, "objects without a commit", outputs.keys() - named.outputs)


def _find(proof: Proof, what: str, keys: Iterable[str]) -> None:
    found = sorted(keys)
    if found:
        proof.findings.append(f"{len(found):,} {what}: {', '.join(found[:_SHOWN_KEYS])}")


def _listed(place: S3Uri, client: S3Client) -> Iterable[tuple[str, str]]:
    """Yield key and ETag of every object below a prefix."""
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=place.bucket, Prefix=place.prefix
    )
    for page in pages:
        for entry in page.get("Contents", ()):
            yield entry["Key"], entry["ETag"].strip('"')


def _named(places: Places, client: S3Client, proof: Proof) -> _Named:
    """Read the commit logs, newest entry first, as an entry may void an older one."""
    state = places.state
    prefix = f"{state.prefix}partitions/"
    keys = [key for key, _ in _listed(S3Uri(state.bucket, prefix), client)]
    named, void = _Named(), set[tuple[str, int]]()
    for key in sorted(keys, reverse=True):
        match = _ENTRY.fullmatch(key, len(prefix))
        if match is None or (match[1], int(match[2])) in void:
            continue
        body = client.get_object(Bucket=state.bucket, Key=key)["Body"].read()
        entry = json.loads(gzip.decompress(body))
        if entry["replaces"] is not None:
            void.add((match[1], entry["replaces"]))
        _take(entry, named, proof)
    return named


def _take(entry: Mapping[str, Any], named: _Named, proof: Proof) -> None:
    output = entry["output"]["key"] if entry["output"] is not None else None
    rows = zip(entry["manifest"]["key"], entry["manifest"]["etag"], strict=True)
    for row in rows:
        if row in named.sources:
            _find(proof, "source is in two commits", [row[0]])
        named.sources[row] = output
    if output is not None:
        named.outputs.add(output)


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of an object, or why it cannot be read."""

    key: str
    text: str = ""
    fault: str = ""


class _Bodies:
    """Reads objects as text, several concurrently."""

    def __init__(
        self, client: S3Client, on_read: Callable[[int, int], None] | None, total: int
    ) -> None:
        self._client = client
        self._on_read = on_read
        self._total = total
        self._done = 0

    def texts(self, pool: ThreadPoolExecutor, bucket: str, keys: Iterable[str]) -> Sequence[_Text]:
        found = []
        for text in pool.map(partial(self._text, bucket), sorted(keys)):
            found.append(text)
            self._done += 1
            if self._on_read is not None:
                self._on_read(self._done, self._total)
        return found

    def _text(self, bucket: str, key: str) -> _Text:
        body = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        try:
            return _Text(key, plain_text(body))
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
            return _Text(key, fault=f"{key} cannot be read: {error}")


def _digest(record: str) -> bytes:
    text = record.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=10).digest()
