"""The second reading of sources in columnar outputs: another reader counts their records.

Only counts are compared, because a columnar output holds the sources' rows, not their bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from compactor.errors import SourceChanged
from compactor.log.columnar import Columnar
from compactor.log.manifest import ManifestRow
from compactor.outputs.pending import PendingOutput
from compactor.outputs.second_pass import declared_by, shown
from compactor.ports import ObjectStore, SourceBody
from compactor.second_reading import Declared, Kind, NotReadable, Reading, judge, plain_pieces, read
from compactor.settings.settings import Settings
from compactor.sizes import MIB

# Types with named fields; sources of all other types became rows as tables.
_JSON = frozenset({Kind.JSON_LINES, Kind.JSON_STREAM, Kind.JSON_DOCUMENT, Kind.TRAIL})
# A blank line; table readers disagree on whether it is a record with one blank cell.
_BLANK = re.compile(rb"^[ \t\r\f\v]+$", re.MULTILINE)
# Sources with more content are left out: it is held as a whole.
_MOST_PLAIN_BYTES = 32 * MIB


def read_rows_again(pending: PendingOutput, settings: Settings, store: ObjectStore) -> str:
    """Count the records of some sources of a Parquet output with another reader.

    The sample is the first source, the last one and one chosen by its hash; with
    ``second_reading`` "all" it is every source. Sources larger than ``sampled_bytes``, or
    than 32 MiB without their compression, are left out.

    Returns:
        The sources whose number of records differs from that in the manifest, in one line; empty
        if there is no difference.

    Raises:
        SourceChanged: a source no longer matches its listing.
    """
    if settings.second_reading == "none" or pending.output is None:
        return ""
    columnar = pending.output.columnar
    if columnar is None:
        return ""
    chosen = _chosen(pending.rows, settings)
    return shown(list(_differences(chosen, columnar, declared_by(settings), store)))


def _chosen(rows: Sequence[ManifestRow], settings: Settings) -> list[ManifestRow]:
    most = settings.limits.sampled_bytes
    small = [row for row in rows if 0 < row.source.size <= most]
    if settings.second_reading == "all" or len(small) <= 3:
        return small
    hashed = min(small[1:-1], key=lambda row: row.source.identity)
    return [small[0], hashed, small[-1]]


def _differences(
    rows: Sequence[ManifestRow], columnar: Columnar, declared: Declared, store: ObjectStore
) -> Iterator[str]:
    names = {field["name"].lower() for field in json.loads(columnar.schema)["fields"]}
    bodies = store.read_sources([row.source for row in rows])
    for row, body in zip(rows, bodies, strict=True):
        if isinstance(body.error, SourceChanged):
            raise body.error
        if body.error is not None or row.facts is None:
            continue
        try:
            content = _plain(body)
        except NotReadable as error:
            yield f"{row.source.key!r}: no other reader can decompress it: {error}"
            continue
        if content is None:
            continue
        counted = _count(content, row.source.key, declared, names)
        written = row.facts.records
        if written not in counted:
            yield f"{row.source.key!r}: {counted[-1]:,} records in, {written:,} in the manifest"


def _plain(body: SourceBody) -> bytes | None:
    """Return the content without its compression; None if it is too much."""
    content = bytearray()
    for piece in plain_pieces(_stored(body)):
        content += piece
        if len(content) > _MOST_PLAIN_BYTES:
            return None
    return bytes(content)


def _stored(body: SourceBody) -> Iterator[bytes]:
    if body.chunks is not None:
        yield from body.chunks()
    else:
        yield body.content or b""


def _count(content: bytes, name: str, declared: Declared, names: set[str]) -> range:
    """Return the range of how many records another reader sees."""
    reading = judge(content, name, declared)
    if reading.kind in _JSON:
        return _json_counts(reading, content)
    if reading.kind is not Kind.TABLE:
        reading = judge(content, name, replace(declared, format="csv"))
    seen = read(reading, (content,))
    least, most = (0, 0) if seen.first is None else _first_counts(seen.first, declared, names)
    below = seen.records.records
    blanks = len(_BLANK.findall(content))
    return range(max(0, below + least - blanks), below + most + 1)


def _json_counts(reading: Reading, content: bytes) -> range:
    lines = reading.as_output()
    seen = read(lines if reading.kind is Kind.JSON_LINES else reading, (content,))
    least = most = seen.records.records
    if seen.glued:
        # A line with several values is one record that fits no row, or, in undelimited JSON, one
        # record per value.
        most = read(reading, (content,)).records.records
    return range(least, most + 1)


def _first_counts(first: Sequence[str], declared: Declared, names: set[str]) -> tuple[int, int]:
    """Return how many records a first row counts as, at least and at most.

    A header consists of the output's column names, of which a given schema may leave some out.
    """
    if declared.csv_header != "auto":
        header = declared.csv_header == "present"
        return (0, 0) if header else (1, 1)
    cells = {cell.strip().lower() for cell in first}
    return (0 if cells & names else 1), (0 if cells <= names else 1)
