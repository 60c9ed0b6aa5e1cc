"""Measures a Delta table by its log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress
from compactor.sizes import GIB
from compactor.table_formats.delta_actions import Metadata
from compactor.table_formats.delta_log import DeltaLog, DeltaState
from compactor_tables.measures import (
    DELTA,
    DataFile,
    PartitionMeasure,
    PartitionValue,
    TableMeasure,
)
from compactor_tables.metadata.delta_schema import physical_names, unwritable

_TARGET = "delta.targetFileSize"
# spark.databricks.delta.optimize.maxFileSize of Delta 4.2.
_USUAL_TARGET = GIB
_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
# Null in a path of Spark, as of Hive, and the characters that are escaped there.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


def measure_delta(address: TableAddress, store: ObjectStore, now: float) -> TableMeasure:
    """Measure a table.

    Args:
        address: of the table.
        store: where its log lies.
        now: UNIX seconds.

    Raises:
        InvalidInput: there is no such table, or its log is incomplete.
        IntegrityError: its log is damaged.
        TransientStoreError: the store did not answer, or the log changed while it was read.
    """
    location = address.location
    assert location is not None  # noqa: S101 - such are the addresses of Delta tables
    state = DeltaLog(location, store).load()
    assert state.metadata is not None  # noqa: S101 - else there is no state
    removed = (one.deletion_timestamp for one in state.removed.values())
    return TableMeasure(
        name=address.text,
        version=str(state.version),
        target_bytes=_target(state.metadata),
        partitions=tuple(_partitions(state, state.metadata)),
        delete_files=sum(1 for one in state.files.values() if one.deleted is not None),
        metadata_files=state.entries,
        versions=state.version - state.first + 1,
        commits=sorted(state.commits),
        format=DELTA,
        metadata_bytes=state.entry_bytes,
        superseded=sorted(one / 1_000 for one in removed if one is not None),
        spark_only=_spark_only(state, state.metadata),
        at=now,
    )


def _spark_only(state: DeltaState, metadata: Metadata) -> str:
    """Return why only Spark can rewrite a table; empty if others can, too."""
    if any(one.deleted is not None for one in state.files.values()):
        return "it has deletion vectors"
    return unwritable(state.protocol, metadata)


def _target(metadata: Metadata) -> int:
    text = (metadata.configuration.get(_TARGET) or "").strip().lower()
    digits = text.rstrip("bkmg ")
    factor = _UNITS.get(text[len(digits) :].strip() or "b", 0)
    size = int(digits) * factor if digits.isdecimal() else 0
    return size or _USUAL_TARGET


@dataclass(slots=True)
class _Gathered:
    where: tuple[PartitionValue, ...]
    files: list[DataFile] = field(default_factory=list)
    changed: float | None = None

    def touch(self, moment: float | None) -> None:
        if moment is not None:
            self.changed = max(moment, self.changed or 0.0)


def _partitions(state: DeltaState, metadata: Metadata) -> Iterator[PartitionMeasure]:
    physical = physical_names(metadata)
    found: dict[tuple[str | None, ...], _Gathered] = {}

    def of(values: Mapping[str, str | None]) -> _Gathered:
        # An empty text is null for every type (protocol, "Partition Value Serialization").
        texts = tuple(values.get(physical[one]) or None for one in metadata.partition_columns)
        if texts not in found:
            named = zip(metadata.partition_columns, texts, strict=True)
            where = tuple(PartitionValue(name, "identity", text) for name, text in named)
            found[texts] = _Gathered(where)
        return found[texts]

    for one in state.files.values():
        gathered = of(one.values)
        gathered.files.append(
            DataFile(one.size, one.rows, one.deleted or 0, int(one.deleted is not None))
        )
        gathered.touch(one.changed)
    for removed in state.removed.values():
        at = removed.deletion_timestamp
        if at and (removed.partition_values is not None or not metadata.partition_columns):
            of(removed.partition_values or {}).touch(at / 1_000)
    made = [(_name(each.where), each) for each in found.values() if each.files]
    for name, each in sorted(made, key=lambda pair: pair[0]):
        yield PartitionMeasure(name, tuple(each.files), each.changed, where=each.where)


def _name(where: tuple[PartitionValue, ...]) -> str:
    return "/".join(f"{_escaped(one.column)}={_escaped(one.value or _NULL)}" for one in where)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
