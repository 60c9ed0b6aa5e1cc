"""The fields of stored documents, as the code has them and as ``docs/format.md`` tells them."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import msgspec
from msgspec import inspect as msgspec_inspect
from msgspec.inspect import Field

from compactor.attributes import Attributes
from compactor.cleaning.clean_up_list import DueWork
from compactor.cleaning.clean_up_receipts import CleanUpCounts, CleanUpReceipt, Undeleted
from compactor.cleaning.clean_up_records import CleanUpRecord
from compactor.cleaning.clean_up_report import CleanUpReport
from compactor.conditions import Condition, Finding, Verdict
from compactor.discovery.counting import Tally
from compactor.discovery.location_checks import NamedLevels
from compactor.discovery.pieces import Partitions, Piece
from compactor.discovery.work_items import WorkItem
from compactor.fingerprint import Seen
from compactor.inventory.inventory_pieces import SortedPart, TakenPiece
from compactor.inventory.pages import InventoryIndex, ListedPage, PageLine
from compactor.log import encoding
from compactor.log.columnar import Columnar, Rejects
from compactor.log.entries import Output
from compactor.log.left_alone import LeftAlone
from compactor.log.manifest import Columns
from compactor.log.rejects import Waiting
from compactor.log.resting import Resting, RestRecord
from compactor.log.size_counts import SizeCounts
from compactor.log.state import QuarantineLine, RunTotals
from compactor.log.witness import Witness
from compactor.model import (
    Compression,
    Format,
    QuarantineReason,
    Skipped,
    SkipReason,
    StoredPart,
    TableDialect,
)
from compactor.orchestration.reconcile_rounds import Round
from compactor.planning.dialects import PinnedDialect
from compactor.probe.probe_records import ProbeRecord
from compactor.readers.outcome import Outcome as ReadersOutcome
from compactor.readers.outcome import Outcomes as ReadersOutcomes
from compactor.readers.switch_records import ReadersMarker, SwitchRecord
from compactor.report.cost import RunCost
from compactor.report.report import RunReport
from compactor.report.run_records import DiscoveryLine
from compactor.runs.partition_receipts import Counts, Receipt
from compactor.runs.resume_point import Own, Place
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
from compactor_tables.lease_holder import Holder
from compactor_tables.maintenance_receipts import MaintenanceReceipt, Position, RewrittenPartition
from compactor_tables.maintenance_report import TablesReport, Totals
from compactor_tables.observation_history import Looks
from compactor_tables.observations import Look, Maintained
from compactor_tables.optimizers import OptimizerLooks
from compactor_tables.orders import Condition as OrderCondition
from compactor_tables.orders import Order, PartitionOrder
from compactor_tables.outcomes import Foretold, Outcome
from compactor_tables.superseded import Superseded

# What is encoded, or decoded, as a JSON object, by its heading in the document.
OBJECTS: dict[str, Any] = {
    "Entry": encoding._Entry,
    "Output": Output,
    "TableDialect": TableDialect,
    "StoredPart": StoredPart,
    "Columnar": Columnar,
    "Rejects": Rejects,
    "Waiting": Waiting,
    "Columns": Columns,
    "Attributes": Attributes,
    "Skipped": Skipped,
    "Witness": Witness,
    "Checkpoint": encoding._Checkpoint,
    "RunTotals": RunTotals,
    "SizeCounts": SizeCounts,
    "QuarantineLine": QuarantineLine,
    "LeftAlone": LeftAlone,
    "PinnedDialect": PinnedDialect,
    "CleanUpRecord": CleanUpRecord,
    "RestRecord": RestRecord,
    "Seen": Seen,
    "TableEntry": TableEntry,
    "NamedOutput": NamedOutput,
    "Acceptance": Acceptance,
    "Reached": Reached,
    "SetAside": SetAside,
    "PublishedMark": PublishedMark,
    "TableCheckpoint": TableCheckpoint,
    "TableHint": TableHint,
    "ProbeRecord": ProbeRecord,
    "Finding": Finding,
    "Discovery": DiscoveryLine,
    "Resting": Resting,
    "Partitions": Partitions,
    "Tally": Tally,
    "NamedLevels": NamedLevels,
    "Piece": Piece,
    "InventoryIndex": InventoryIndex,
    "PageLine": PageLine,
    "ListedPage": ListedPage,
    "TakenPiece": TakenPiece,
    "SortedPart": SortedPart,
    "WorkItem": WorkItem,
    "DueWork": DueWork,
    "Receipt": Receipt,
    "Counts": Counts,
    "Place": Place,
    "Own": Own,
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
    "Looks": Looks,
    "Look": Look,
    "Maintained": Maintained,
    "Superseded": Superseded,
    "Lease": Lease,
    "Holder": Holder,
    "OptimizerLooks": OptimizerLooks,
    "Order": Order,
    "PartitionOrder": PartitionOrder,
    "OrderCondition": OrderCondition,
    "MaintenanceReceipt": MaintenanceReceipt,
    "RewrittenPartition": RewrittenPartition,
    "Position": Position,
    "Outcome": Outcome,
    "Foretold": Foretold,
    "TablesReport": TablesReport,
    "Totals": Totals,
    "ReadersMarker": ReadersMarker,
    "ReadersOutcome": ReadersOutcome,
    "ReadersOutcomes": ReadersOutcomes,
    "SwitchRecord": SwitchRecord,
}
# Where two kinds have one name.
_NAMED: dict[type, str] = {
    OrderCondition: "OrderCondition",
    ReadersOutcome: "ReadersOutcome",
    ReadersOutcomes: "ReadersOutcomes",
}
# Objects that tell their version, by a field that no type of the code has.
NUMBERED: tuple[str, ...] = (
    "Entry",
    "Checkpoint",
    "ProbeRecord",
    "Discovery",
    "Partitions",
    "Piece",
    "InventoryIndex",
    "TakenPiece",
    "Receipt",
    "CleanUpReceipt",
    "TableReceipt",
    "Round",
    "RunReport",
    "Looks",
    "Superseded",
    "Lease",
    "OptimizerLooks",
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
    "Condition": Condition,
    "Verdict": Verdict,
}
_REQUIRED = "always there"
_SIMPLE: dict[Any, str] = {
    msgspec_inspect.IntType: "whole number",
    msgspec_inspect.FloatType: "number",
    msgspec_inspect.StrType: "text",
    msgspec_inspect.BoolType: "true or false",
    msgspec_inspect.BytesType: "Base64",
    msgspec_inspect.NoneType: "null",
    msgspec_inspect.AnyType: "anything",
}
_HEADING = re.compile(r"^#{2,4} (?:.*\()?`?(\w+)`?\)?$", re.MULTILINE)
_ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_VALUE = re.compile(r"^- `([^`]+)`: \S", re.MULTILINE)

#: Of each field its kind, and what its absence means.
Table = dict[str, tuple[str, str]]


def table_of(name: str) -> Table:
    """The fields of an object as the code has them."""
    found = msgspec_inspect.type_info(OBJECTS[name])
    fields: tuple[Field, ...] = found.fields  # type: ignore[attr-defined] # of all of these
    table = {one.encode_name: (_kind(one.type), _absent(one)) for one in fields}
    told = name in NUMBERED or "version" in table
    return {**table, "version": ("whole number", _REQUIRED)} if told else table


def sections_of(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each section of the document that is about an object or its values."""
    found = list(_HEADING.finditer(text))
    for one, following in zip(found, [*found[1:], None], strict=True):
        yield one[1], text[one.end() : following.start() if following else len(text)]


def told_table(section: str) -> Table:
    """The fields that a section tells."""
    return {row[1]: (row[2].strip(), row[3].strip()) for row in _ROW.finditer(section)}


def told_values(section: str) -> list[str]:
    """The values that a section tells."""
    return _VALUE.findall(section)


def _absent(one: Field) -> str:
    if one.required:
        return _REQUIRED
    default = one.default
    if one.default_factory is not msgspec.NODEFAULT:
        default = one.default_factory()
    return "empty" if is_dataclass(default) else json.dumps(msgspec.to_builtins(default))


def _kind(one: Any) -> str:
    simple = _SIMPLE.get(type(one))
    if simple is not None:
        return simple
    if isinstance(one, msgspec_inspect.EnumType | msgspec_inspect.DataclassType):
        return f"`{_NAMED.get(one.cls, one.cls.__name__)}`"
    return _kind_of_many(one)


def _kind_of_many(one: Any) -> str:
    match one:
        case msgspec_inspect.StructType():
            return f"`{_NAMED.get(one.cls, one.cls.__name__.strip('_'))}`"
        case msgspec_inspect.ListType() | msgspec_inspect.VarTupleType():
            item = _kind(one.item_type)
            several = isinstance(one.item_type, msgspec_inspect.UnionType)
            return f"list of ({item})" if several else f"list of {item}"
        case msgspec_inspect.TupleType():
            return f"[{', '.join(map(_kind, one.item_types))}]"
        case msgspec_inspect.DictType():
            return f"object of {_kind(one.value_type)}"
        case msgspec_inspect.UnionType():
            return " or ".join(map(_kind, one.types))
    raise AssertionError(f"no words for {one}")
