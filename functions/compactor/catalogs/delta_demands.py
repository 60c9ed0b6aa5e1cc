"""What a Delta table requires of its writers that a commit of existing data files cannot provide.

Such a commit reads the footers of its files, but no rows. So tables are refused that need checks or
computation for each row, and so are features that delta-rs (1.6) does not write. For the latter it
raises the same error as for a lost race, and only after everything has been compacted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from deltalake import DeltaTable

# Features of tables that delta-rs commits to. A table that actually uses an unsupported one of
# them is refused because of its columns or properties.
_KEPT_FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "variantType",
    }
)
# Version 6 is identity columns, which delta-rs does not write, even if the table has none.
_KEPT_WRITER_VERSIONS = (1, 2, 3, 4, 5, 7)
_CONSTRAINTS = "delta.constraints."
_FORGETS = "delta.setTransactionRetentionDuration"
# By prefix of the keys of a column's metadata (Delta protocol, "Column Metadata").
_COLUMNS = {
    "delta.generationExpression": ("generated columns", "nothing computes it for an output"),
    "delta.identity.": ("identity columns", "nothing counts it on for an output"),
    "delta.invariants": ("column invariants", "rows of an output are not read again"),
    "CURRENT_DEFAULT": ("default values", "nothing fills it in for an output"),
}


def refusal_of(table: DeltaTable) -> str:
    """Return why files cannot be added, as what would be accepted instead; empty if they can."""
    protocol, metadata = table.protocol(), table.metadata()
    schema = json.loads(table.schema().to_json())
    faults = (
        _of_protocol(protocol.min_writer_version, protocol.writer_features or ()),
        _of_partitions(metadata.partition_columns),
        _of_properties(metadata.configuration),
        _of_columns(schema),
    )
    return next(filter(None, faults), "")


def _of_protocol(version: int, features: Any) -> str:
    if version not in _KEPT_WRITER_VERSIONS:
        return (
            "a Delta table of minWriterVersion 1 to 5, or 7, which are those that delta-rs writes;"
            f" this one asks for {version}"
        )
    unknown = sorted(set(features) - _KEPT_FEATURES)
    if not unknown:
        return ""
    return (
        f"a Delta table without the table feature{'s' * (len(unknown) > 1)} {', '.join(unknown)},"
        " which a commit of existing data files cannot keep"
    )


def _of_partitions(columns: list[str]) -> str:
    if not columns:
        return ""
    return (
        "a Delta table without partitions: its outputs hold all their columns; this one is"
        f" partitioned by {', '.join(columns)}"
    )


def _of_properties(properties: Mapping[str, str | None]) -> str:
    checked = [name for name in sorted(properties) if name.startswith(_CONSTRAINTS)]
    if checked:
        name = checked[0]
        return (
            "a Delta table without CHECK constraints: rows of an output are not read again; this"
            f" one has {name.removeprefix(_CONSTRAINTS)} ({properties[name]})"
        )
    mapping = properties.get("delta.columnMapping.mode") or "none"
    if mapping != "none":
        return f"a Delta table without column mapping, which is {mapping!r} here"
    if properties.get(_FORGETS):
        return (
            f"a Delta table without {_FORGETS} ({properties[_FORGETS]} here), after which it"
            " forgets what it was given"
        )
    return ""


def _of_columns(schema: Mapping[str, Any]) -> str:
    for name, metadata in _metadata_in(schema, ""):
        for begin, (what, why) in _COLUMNS.items():
            if any(one.startswith(begin) for one in metadata):
                return f"a Delta table without {what}: {why}; this one has {name}"
    return ""


def _metadata_in(kind: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and metadata of every column, including nested ones."""
    if not isinstance(kind, Mapping):
        return
    for one in kind.get("fields", ()):
        name = f"{path}{one['name']}"
        yield name, one.get("metadata") or {}
        yield from _metadata_in(one["type"], f"{name}.")
    for inner in ("elementType", "keyType", "valueType"):
        yield from _metadata_in(kind.get(inner), path)
