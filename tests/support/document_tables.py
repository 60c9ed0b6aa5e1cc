"""The fields of stored documents in the code; :mod:`.format_document` reads those in the page."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as msgspec_inspect
from msgspec.inspect import Field

from compactor.attributes import Attributes
from compactor.cleaning.clean_up_list import DueWork
from compactor.cleaning.clean_up_receipts import CleanUpCounts, CleanUpReceipt, Undeleted
from compactor.cleaning.clean_up_records import CleanUpRecord
from compactor.cleaning.clean_up_report import CleanUpReport
from compactor.log import encoding
from compactor.log.counts import LeftAlone, SizeCounts
from compactor.log.entries import Columnar, DeadLetters, Output
from compactor.log.identity import Identity
from compactor.log.manifest import Columns
from compactor.log.state import QuarantineLine, RunTotals
from compactor.model import (
    Compression,
    Format,
    Partition,
    QuarantineReason,
    Skipped,
    SkipReason,
    StoredPart,
    TableDialect,
)
from compactor.orchestration.reconcile_rounds import Round
from compactor.partition.receipts import Counts, Cursor, Receipt
from compactor.ports import Deletes, StoreTraits
from compactor.probe.probe import ProbeRecord
from compactor.readers.outcome import Outcome as ReadersOutcome
from compactor.readers.outcome import Outcomes as ReadersOutcomes
from compactor.readers.switch_records import ReadersMarker, SwitchRecord
from compactor.report.cost import RunCost
from compactor.report.report import RunReport
from compactor.report.run_history import RunHistory, RunLine
from compactor.report.run_records import DiscoveryLine
from compactor.sinks.table_entries import (
    Acceptance,
    NamedOutput,
    PublishedMark,
    Reached,
    SetAside,
    TableCheckpoint,
    TableEntry,
)
from compactor.sinks.table_log import TableHint
from compactor.sinks.table_receipts import TableReceipt
from compactor.sinks.upserts import UpsertCounts, UpsertKey
from compactor_tables.lease import Lease
from compactor_tables.maintenance_receipts import MaintenanceReceipt, Position, RewrittenPartition
from compactor_tables.maintenance_report import TablesReport, Totals
from compactor_tables.orders import Condition as OrderCondition
from compactor_tables.orders import Order, PartitionOrder
from compactor_tables.outcomes import Estimate, Outcome

# Types that are stored as JSON objects, by their heading in the document.
OBJECTS: dict[str, Any] = {
    "Entry": encoding._Entry,
    "Output": Output,
    "TableDialect": TableDialect,
    "StoredPart": StoredPart,
    "Columnar": Columnar,
    "DeadLetters": DeadLetters,
    "Columns": Columns,
    "Attributes": Attributes,
    "Skipped": Skipped,
    "Checkpoint": encoding._Checkpoint,
    "RunTotals": RunTotals,
    "Identity": Identity,
    "SizeCounts": SizeCounts,
    "QuarantineLine": QuarantineLine,
    "LeftAlone": LeftAlone,
    "CleanUpRecord": CleanUpRecord,
    "TableEntry": TableEntry,
    "NamedOutput": NamedOutput,
    "Acceptance": Acceptance,
    "Reached": Reached,
    "SetAside": SetAside,
    "PublishedMark": PublishedMark,
    "TableCheckpoint": TableCheckpoint,
    "TableHint": TableHint,
    "RunHistory": RunHistory,
    "RunLine": RunLine,
    "ProbeRecord": ProbeRecord,
    "StoreTraits": StoreTraits,
    "Discovery": DiscoveryLine,
    "Partition": Partition,
    "DueWork": DueWork,
    "Receipt": Receipt,
    "Counts": Counts,
    "Cursor": Cursor,
    "CleanUpReceipt": CleanUpReceipt,
    "CleanUpCounts": CleanUpCounts,
    "Undeleted": Undeleted,
    "TableReceipt": TableReceipt,
    "Round": Round,
    "UpsertKey": UpsertKey,
    "UpsertCounts": UpsertCounts,
    "RunReport": RunReport,
    "CleanUpReport": CleanUpReport,
    "RunCost": RunCost,
    "Lease": Lease,
    "Order": Order,
    "PartitionOrder": PartitionOrder,
    "OrderCondition": OrderCondition,
    "MaintenanceReceipt": MaintenanceReceipt,
    "RewrittenPartition": RewrittenPartition,
    "Position": Position,
    "Outcome": Outcome,
    "Estimate": Estimate,
    "TablesReport": TablesReport,
    "Totals": Totals,
    "ReadersMarker": ReadersMarker,
    "ReadersOutcome": ReadersOutcome,
    "ReadersOutcomes": ReadersOutcomes,
    "SwitchRecord": SwitchRecord,
}
# Names of types whose class name is ambiguous.
_NAMED: dict[type, str] = {
    OrderCondition: "OrderCondition",
    ReadersOutcome: "ReadersOutcome",
    ReadersOutcomes: "ReadersOutcomes",
}
# Objects with a version field that their type in the code does not have.
NUMBERED: tuple[str, ...] = (
    "Entry",
    "Checkpoint",
    "ProbeRecord",
    "Discovery",
    "Receipt",
    "CleanUpReceipt",
    "TableReceipt",
    "Round",
    "RunReport",
    "RunHistory",
    "Lease",
    "Order",
    "MaintenanceReceipt",
    "Outcome",
    "TablesReport",
)
VALUES: dict[str, type[enum.Enum]] = {
    "Format": Format,
    "Compression": Compression,
    "QuarantineReason": QuarantineReason,
    "SkipReason": SkipReason,
    "Deletes": Deletes,
}
_SIMPLE: dict[Any, str] = {
    msgspec_inspect.IntType: "int",
    msgspec_inspect.FloatType: "float",
    msgspec_inspect.StrType: "text",
    msgspec_inspect.BoolType: "bool",
    msgspec_inspect.BytesType: "bytes",
    msgspec_inspect.NoneType: "null",
    msgspec_inspect.AnyType: "any",
}
_OBJECT = (
    msgspec_inspect.StructType,
    msgspec_inspect.DataclassType,
    msgspec_inspect.NamedTupleType,
)
#: The meaning of a missing field: ``?`` for the zero value of its type, JSON for another default.
REQUIRED, ZERO = "required", "?"
VERSION = ("int", REQUIRED)
#: Field name -> its type, and what its absence means.
Table = dict[str, tuple[str, str]]


def table_of(name: str) -> Table:
    """Return the fields of an object in the code."""
    table = _table(msgspec_inspect.type_info(OBJECTS[name]))
    return {**table, "version": VERSION} if name in NUMBERED or "version" in table else table


def _table(info: Any) -> Table:
    return {one.encode_name: (_kind(one.type), _absent(one)) for one in info.fields}


def parts_of(name: str, document: Any) -> Iterator[tuple[str, dict[str, Any], Table]]:
    """Yield each object in a document, itself first: its type, its fields, and the allowed fields.

    Nested objects have no version of their own.
    """
    info = msgspec_inspect.type_info(OBJECTS[name])
    for number, (found, body, table) in enumerate(_parts(info, document)):
        yield (found, body, table) if number else (name, body, table_of(name))


def _parts(info: Any, value: Any) -> Iterator[tuple[str, dict[str, Any], Table]]:
    if isinstance(info, _OBJECT) and value is not None:
        yield _name(info), value, _table(info)
    for one, within in _within(info, value):
        yield from _parts(one, within)


def _within(info: Any, value: Any) -> list[tuple[Any, Any]]:
    """Return the values that a value consists of, each with its type."""
    if value is None:
        return []
    match info:
        case msgspec_inspect.UnionType():
            return [(one, value) for one in info.types]
        case msgspec_inspect.ListType() | msgspec_inspect.VarTupleType():
            return [(info.item_type, one) for one in value]
        case msgspec_inspect.DictType():
            return [(info.value_type, one) for one in value.values()]
        case _ if isinstance(info, _OBJECT):
            return [(one.type, value.get(one.encode_name)) for one in info.fields]
    return []


def _absent(one: Field) -> str:
    if one.required:
        return REQUIRED
    default = one.default
    if one.default_factory is not msgspec.NODEFAULT:
        default = one.default_factory()
    shown = msgspec.to_builtins(default)
    return ZERO if _is_zero(shown) else json.dumps(shown)


def _is_zero(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_zero, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_zero, value))
    return not value


def _name(info: Any) -> str:
    return _NAMED.get(info.cls, str(info.cls.__name__).strip("_"))


def _kind(one: Any) -> str:
    simple = _SIMPLE.get(type(one))
    if simple is not None:
        return simple
    if isinstance(one, msgspec_inspect.EnumType):
        return str(one.cls.__name__)
    if isinstance(one, _OBJECT):
        return _name(one)
    return _kind_of_many(one)


def _kind_of_many(one: Any) -> str:
    match one:
        case msgspec_inspect.ListType() | msgspec_inspect.VarTupleType():
            return f"[{_kind(one.item_type)}]"
        case msgspec_inspect.TupleType():
            return f"({','.join(map(_kind, one.item_types))})"
        case msgspec_inspect.DictType():
            return f"{{{_kind(one.value_type)}}}"
        case msgspec_inspect.UnionType():
            kinds = sorted(map(_kind, one.types), key=lambda kind: kind == "null")
            return f"{kinds[0]}?" if kinds[1:] == ["null"] else "|".join(kinds)
    raise AssertionError(f"no words for {one}")
