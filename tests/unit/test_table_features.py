"""Which features of a table a run keeps, and which it refuses before it compacts anything.

Each row here is named in docs/tables.md. Tables have their features by hand where no library at
hand makes them, and what is supported is counted by readers that are not ours.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compactor.catalogs.delta import DeltaCatalog
from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.sinks.table_log import TableLog
from compactor.sinks.table_publisher import check_table
from tests.support.table_places import Place, lake_on_aws

duckdb = pytest.importorskip("duckdb")

A = Partition("source", "logs/a/", "a/")
Make = Callable[[Place], None]
SUPPORTED, KEPT, REFUSED = "supported", "kept", "refused"


@dataclass(frozen=True)
class Feature:
    """A row of the matrix.

    Attributes:
        kind: of the table, as :class:`Place` takes it.
        name: as the document has it.
        verdict: likewise.
        make: makes a table with it.
        expected: what a run says that it expects instead.
    """

    kind: str
    name: str
    verdict: str
    make: Make
    expected: str = ""

    @property
    def id(self) -> str:
        """For the test's name."""
        return f"{self.format}: {self.name}"

    @property
    def format(self) -> str:
        """As the document has it."""
        return "Delta" if self.kind == "delta" else "Iceberg"


# Delta: the log is written by hand.


def delta(
    writer: int = 2,
    features: tuple[str, ...] = (),
    *,
    reader: tuple[str, ...] | None = None,
    properties: Mapping[str, str] | None = None,
    column: Mapping[str, Any] | None = None,
    more: tuple[Mapping[str, Any], ...] = (),
    partitions: tuple[str, ...] = (),
) -> Make:
    """A table of one column ``id``, and what is given."""
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": writer}
    if features:
        protocol |= {"minWriterVersion": 7, "writerFeatures": features}
    if reader is not None:
        protocol |= {"minReaderVersion": 3, "readerFeatures": reader}
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}, **(column or {})},
        *({"nullable": True, "metadata": {}, **one} for one in more),
    ]
    metadata = {
        "id": "11111111-1111-1111-1111-111111111111",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": partitions,
        "configuration": dict(properties or {}),
        "createdTime": 1,
    }
    lines = ({"protocol": protocol}, {"metaData": metadata})
    body = "\n".join(json.dumps(one) for one in lines).encode()

    def make(place: Place) -> None:
        place.store.put(place.bucket, f"events/_delta_log/{0:020}.json", body)

    return make


def cannot_keep(*features: str) -> str:
    return (
        f"a Delta table without the table feature{'s' * (len(features) > 1)} {', '.join(features)},"
        " which a commit of existing data files cannot keep"
    )


def computed(name: str, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": name, "type": "long", "metadata": metadata}


_IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1}
_INVARIANT = {"delta.invariants": json.dumps({"expression": {"expression": "id > 10"}})}
_TIMESTAMP = {"name": "at", "type": "timestamp_ntz"}

_DELTA = (
    ("append only", SUPPORTED, delta(properties={"delta.appendOnly": "true"}), ""),
    ("`NOT NULL` columns", SUPPORTED, delta(column={"nullable": False}), ""),
    (
        "change data feed",
        SUPPORTED,
        delta(4, properties={"delta.enableChangeDataFeed": "true"}),
        "",
    ),
    (
        "deletion vectors",
        SUPPORTED,
        delta(
            features=("deletionVectors",),
            reader=("deletionVectors",),
            properties={"delta.enableDeletionVectors": "true"},
        ),
        "",
    ),
    (
        "timestamps without a zone",
        SUPPORTED,
        delta(features=("timestampNtz",), reader=("timestampNtz",), more=(_TIMESTAMP,)),
        "",
    ),
    (
        "V2 checkpoints",
        SUPPORTED,
        delta(
            features=("v2Checkpoint",),
            reader=("v2Checkpoint",),
            properties={"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1"},
        ),
        "",
    ),
    (
        "variant columns, where outputs have none",
        SUPPORTED,
        delta(
            features=("variantType",),
            reader=("variantType",),
            more=({"name": "v", "type": "variant"},),
        ),
        "",
    ),
    (
        "`CHECK` constraints",
        REFUSED,
        delta(3, properties={"delta.constraints.pos": "id > 10"}),
        (
            "a Delta table without CHECK constraints: rows of an output are not read again; this"
            " one has pos (id > 10)"
        ),
    ),
    (
        "column invariants",
        REFUSED,
        delta(column={"metadata": _INVARIANT}),
        (
            "a Delta table without column invariants: rows of an output are not read again; this"
            " one has id"
        ),
    ),
    (
        "generated columns",
        REFUSED,
        delta(4, more=(computed("day", {"delta.generationExpression": "id % 7"}),)),
        (
            "a Delta table without generated columns: nothing computes it for an output; this one"
            " has day"
        ),
    ),
    (
        "identity columns",
        REFUSED,
        delta(features=("invariants", "identityColumns"), more=(computed("n", _IDENTITY),)),
        cannot_keep("identityColumns"),
    ),
    (
        "default values",
        REFUSED,
        delta(features=("allowColumnDefaults",), more=(computed("n", {"CURRENT_DEFAULT": "1"}),)),
        cannot_keep("allowColumnDefaults"),
    ),
    (
        "column mapping",
        REFUSED,
        delta(5, properties={"delta.columnMapping.mode": "name"}),
        "a Delta table without column mapping, which is 'name' here",
    ),
    (
        "partitions",
        REFUSED,
        delta(more=({"name": "day", "type": "string"},), partitions=("day",)),
        (
            "a Delta table without partitions: its outputs hold all their columns; this one is"
            " partitioned by day"
        ),
    ),
    (
        "row tracking",
        REFUSED,
        delta(
            features=("domainMetadata", "rowTracking"),
            properties={"delta.enableRowTracking": "true"},
        ),
        cannot_keep("domainMetadata", "rowTracking"),
    ),
    (
        "in-commit timestamps",
        REFUSED,
        delta(
            features=("inCommitTimestamp",),
            properties={"delta.enableInCommitTimestamps": "true"},
        ),
        cannot_keep("inCommitTimestamp"),
    ),
    (
        "liquid clustering",
        REFUSED,
        delta(features=("clustering", "domainMetadata")),
        cannot_keep("clustering", "domainMetadata"),
    ),
    (
        "type widening",
        REFUSED,
        delta(features=("typeWidening",), reader=("typeWidening",)),
        cannot_keep("typeWidening"),
    ),
    (
        "VACUUM protocol check",
        REFUSED,
        delta(features=("vacuumProtocolCheck",), reader=("vacuumProtocolCheck",)),
        cannot_keep("vacuumProtocolCheck"),
    ),
    (
        "Iceberg compatibility (UniForm)",
        REFUSED,
        delta(features=("icebergCompatV2",)),
        cannot_keep("icebergCompatV2"),
    ),
    (
        "an unknown writer feature",
        REFUSED,
        delta(features=("appendOnly", "somethingNew")),
        cannot_keep("somethingNew"),
    ),
    (
        "a higher `minWriterVersion`",
        REFUSED,
        delta(8),
        (
            "a Delta table of minWriterVersion 1 to 5, or 7, which are those that delta-rs writes;"
            " this one asks for 8"
        ),
    ),
    (
        "an unknown reader feature",
        REFUSED,
        delta(features=("newReader",), reader=("newReader",)),
        (
            "a Delta table that delta-rs reads; it says: Kernel error: Unsupported: Feature"
            " 'newReader' is not supported"
        ),
    ),
    (
        "catalog-managed commits",
        REFUSED,
        delta(features=("catalogManaged",), reader=("catalogManaged",)),
        (
            "a Delta table that delta-rs reads; it says: Kernel error: Max catalog version error:"
            " Max catalog version is required when loading a catalog-managed table. Use"
            " with_max_catalog_version()."
        ),
    ),
    (
        "`delta.setTransactionRetentionDuration`",
        REFUSED,
        delta(properties={"delta.setTransactionRetentionDuration": "interval 1 day"}),
        (
            "a Delta table without delta.setTransactionRetentionDuration (interval 1 day here),"
            " after which it forgets what it was given"
        ),
    ),
)


# Iceberg: pyiceberg makes a table of version 2, and its metadata is changed by hand.


def iceberg(change: Callable[[dict[str, Any]], None] | None = None, **columns: Any) -> Make:
    """A table of one column ``id``, of which a snapshot has the row 0."""

    def make(place: Place) -> None:
        given = {"id": pa.array([0]), **columns}
        catalog: Any = place.catalog
        catalog.create([place.put("first", pa.table(given))])
        handle = catalog._catalog.load_table(catalog._address.name)
        handle.append(pa.table(given))
        if change is None:
            return
        key = handle.metadata_location.removeprefix(f"s3://{place.bucket}/")
        metadata = json.loads(place.store.get(place.bucket, key))
        change(metadata)
        place.store.put(place.bucket, key, json.dumps(metadata).encode())

    return make


def version(number: int, *more: Mapping[str, Any]) -> Make:
    def change(metadata: dict[str, Any]) -> None:
        metadata["format-version"] = number
        metadata["next-row-id"] = 1
        metadata["schemas"][0]["fields"] += more

    return iceberg(change)


def of_version_1(place: Place) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    catalog: Any = place.catalog
    catalog._catalog.create_namespace("lake")
    catalog._catalog.create_table(
        catalog._address.name,
        Schema(NestedField(1, "id", LongType(), required=False)),
        location=f"s3://{place.bucket}/first",
        properties={"format-version": "1"},
    )


def with_position_deletes(place: Place) -> None:
    """The row 0 is deleted by a file of positions, as engines do that merge on read."""
    from pyiceberg import manifest
    from pyiceberg.typedef import Record

    class Writer(manifest.ManifestWriterV2):
        def content(self) -> manifest.ManifestContent:
            return manifest.ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    iceberg()(place)
    loaded = place.catalog.load("log")
    assert loaded is not None
    handle: Any = loaded.handle
    (task,) = handle.scan().plan_files()
    columns = (("file_path", pa.string(), 2147483546), ("pos", pa.int64(), 2147483545))
    schema = pa.schema(
        pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(number)})
        for name, kind, number in columns
    )
    deleted = pa.table([[task.file.file_path], [0]], schema=schema)
    file = place.put("deletes", deleted)
    with handle.transaction() as transaction:
        producer = transaction.update_snapshot().fast_append()
        producer.new_manifest_writer = lambda spec: Writer(
            spec,
            handle.schema(),
            producer.new_manifest_output(),
            producer.snapshot_id,
            producer._compression,
        )
        producer.append_data_file(
            manifest.DataFile.from_args(
                content=manifest.DataFileContent.POSITION_DELETES,
                file_path=file.uri,
                file_format=manifest.FileFormat.PARQUET,
                partition=Record(),
                record_count=1,
                file_size_in_bytes=file.size,
                spec_id=0,
            )
        )
        producer.commit()
    assert handle.scan().to_arrow().num_rows == 0


def divided(transform: str, source: int = 1) -> Make:
    def change(metadata: dict[str, Any]) -> None:
        field = {"source-id": source, "field-id": 1000, "name": "p", "transform": transform}
        metadata["partition-specs"].append({"spec-id": 1, "fields": [field]})
        metadata["default-spec-id"] = 1
        metadata["last-partition-id"] = 1000

    return iceberg(change, ratio=pa.array([0.5]))


def sorted_by_id(metadata: dict[str, Any]) -> None:
    field = {
        "transform": "identity",
        "source-id": 1,
        "direction": "asc",
        "null-order": "nulls-first",
    }
    metadata["sort-orders"].append({"order-id": 1, "fields": [field]})
    metadata["default-sort-order-id"] = 1


def tagged(metadata: dict[str, Any]) -> None:
    at = metadata["current-snapshot-id"]
    for name, kind in (("audit", "branch"), ("month", "tag")):
        metadata["refs"][name] = {"snapshot-id": at, "type": kind}


def required(*, identifies: bool = False) -> Make:
    def change(metadata: dict[str, Any]) -> None:
        metadata["schemas"][0]["fields"][0]["required"] = True
        if identifies:
            metadata["schemas"][0]["identifier-field-ids"] = [1]

    return iceberg(change)


def encrypted(metadata: dict[str, Any]) -> None:
    metadata["properties"]["encryption.key-id"] = "arn:key"


def of_version(number: int, why: str) -> str:
    return f"an Iceberg table of format version 2; this one is of version {number}, {why}"


def unproved(transform: str, kind: str) -> str:
    return (
        "an Iceberg table whose partitions the bounds of a file can prove; this one has p,"
        f" {transform} of a column of type {kind}"
    )


_V3 = of_version(3, "which pyiceberg does not write")
_DEFAULT = {"id": 9, "name": "n", "type": "long", "required": False, "initial-default": 5}

_ICEBERG = (
    ("version 2", SUPPORTED, iceberg(), ""),
    ("position deletes (merge on read)", KEPT, with_position_deletes, ""),
    ("partitions by a transform that keeps order", SUPPORTED, divided("truncate[1000]"), ""),
    ("required columns", SUPPORTED, required(), ""),
    ("identifier fields", KEPT, required(identifies=True), ""),
    ("branches and tags", KEPT, iceberg(tagged), ""),
    ("a sort order", KEPT, iceberg(sorted_by_id), ""),
    (
        "version 1",
        REFUSED,
        of_version_1,
        of_version(1, "which has no sequence numbers to recognise a rollback by"),
    ),
    (
        "partitions by floating point",
        REFUSED,
        divided("identity", 2),
        unproved("identity", "double"),
    ),
    (
        "an unknown transform",
        REFUSED,
        divided("zorder[3]"),
        unproved("unknown", "long"),
    ),
    (
        "encryption",
        REFUSED,
        iceberg(encrypted),
        "an Iceberg table without encryption, which encryption.key-id turns on here",
    ),
    ("version 3 (row lineage, deletion vectors)", REFUSED, version(3), _V3),
    ("version 3: default values", REFUSED, version(3, _DEFAULT), _V3),
    (
        "version 3: timestamps in nanoseconds",
        REFUSED,
        version(3, {"id": 9, "name": "at", "type": "timestamp_ns", "required": False}),
        _V3,
    ),
    (
        "version 3: variant columns",
        REFUSED,
        version(3, {"id": 9, "name": "v", "type": "variant", "required": False}),
        (
            "an Iceberg table whose metadata pyiceberg reads; it says: Value error, Unsupported"
            " field type: 'variant'"
        ),
    ),
    (
        "version 4",
        REFUSED,
        version(4),
        (
            "an Iceberg table whose metadata pyiceberg reads; it says: Input tag '4' found using"
            " 'format_version' | 'format-version' does not match any of the expected tags: 1, 2, 3"
        ),
    ),
)

FEATURES = [
    *(Feature("sql", *one) for one in _ICEBERG),
    *(Feature("delta", *one) for one in _DELTA),
]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with lake_on_aws() as url:
        yield url


@pytest.fixture
def place(feature: Feature, endpoint: str, tmp_path: Path) -> Place:
    found = Place(feature.kind, endpoint, f"{FEATURES.index(feature)}", tmp_path)
    feature.make(found)
    return found


def counted_by_duckdb(place: Place, directory: Path) -> int:
    """Rows in the files that the table's own library names."""
    handle: Any = place.state().handle
    if place.kind == "delta":
        uris = handle.file_uris()
    else:
        uris = handle.inspect.data_files().column("file_path").to_pylist()
    if not uris:
        return 0
    paths = []
    for number, uri in enumerate(uris):
        path = directory / f"{number}.parquet"
        path.write_bytes(place.store.get(*uri.removeprefix("s3://").split("/", 1)))
        paths.append(str(path))
    with duckdb.connect() as connection:
        found = connection.execute("SELECT count(id) FROM read_parquet(?)", [paths]).fetchone()
        return int(found[0])


@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: one.id)
def test_a_feature_is_kept_or_refused_before_anything_is_done(feature, place, tmp_path):
    place.commit(A, id=[1, 2])

    def look() -> None:
        check_table(place.settings, place.store, place.catalog)

    if feature.verdict == REFUSED:
        waited: list[float] = []
        for act in (look, lambda: place.publish(pause=waited.append)):
            with pytest.raises(InvalidInput) as told:
                act()
            assert told.value.field == "table"
            assert told.value.accepted == feature.expected
        assert waited == []
        assert TableLog(place.store, place.settings, place.log_id).load().last == 0
        return
    look()
    rows, counted = place.rows(), counted_by_duckdb(place, tmp_path)
    assert place.publish().rows == 2
    place.commit(A, id=[3])
    assert place.publish().rows == 1
    assert place.publish().rows == 0
    assert place.rows() == rows + Counter([1, 2, 3])
    assert counted_by_duckdb(place, tmp_path) == counted + 3


def test_the_document_has_the_same_rows(repo_root):
    text = (repo_root / "docs" / "tables.md").read_text(encoding="utf-8")
    section = text.partition("\n## Features of tables\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    told = {
        (format_, verdict, name)
        for format_, verdict, names in ([cell.strip() for cell in row] for row in rows[2:])
        for name in names.split("; ")
    }
    assert told == {(one.format, one.verdict, one.name) for one in FEATURES}


def made(endpoint: str, directory: Path, name: str, kind: str, make: Make) -> Place:
    found = Place(kind, endpoint, name, directory)
    make(found)
    return found


@pytest.mark.parametrize(
    ("kind", "make"), [("delta", delta(column={"nullable": False})), ("sql", required())]
)
@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        ({"id": [1, None]}, {}, "column id is without a value in 1 of 2 rows"),
        ({"other": [1]}, {}, "column id is without a value in 1 of 1 rows"),
        ({"id": [1]}, {"write_statistics": False}, "column id is without a count of its nulls"),
    ],
)
def test_an_output_without_a_value_that_the_table_requires_is_refused(
    kind, make, columns, given, said, endpoint, tmp_path, request
):
    place = made(endpoint, tmp_path, f"{abs(hash(request.node.name)):x}"[:12], kind, make)
    file = place.put("more", pa.table(columns), **given)
    loaded = place.catalog.load("log")
    assert loaded is not None
    found = place.catalog.unfit(loaded, [file], evolve=True)
    assert said in found[file]


def test_what_is_added_to_a_change_data_feed_is_reported_by_it(endpoint, tmp_path):
    make = delta(4, properties={"delta.enableChangeDataFeed": "true"})
    place = made(endpoint, tmp_path, "feed", "delta", make)
    place.commit(A, id=[1, 2])
    place.publish()
    handle: Any = place.state().handle
    fed = pa.table(handle.load_cdf(starting_version=0).read_all())
    assert sorted(fed.column("id").to_pylist()) == [1, 2]
    assert set(fed.column("_change_type").to_pylist()) == {"insert"}


def test_a_feature_that_others_turn_on_before_the_commit_is_refused_and_not_tried_again(
    endpoint, tmp_path, monkeypatch
):
    """delta-rs has one error for a lost race and for what it does not write."""
    place = made(endpoint, tmp_path, "turned-on", "delta", delta())
    place.commit(A, id=[1])
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["somethingNew"]}
    append = DeltaCatalog.append

    def late(*given: Any, **named: Any) -> str:
        monkeypatch.undo()
        body = json.dumps({"protocol": protocol}).encode()
        place.store.put(place.bucket, f"events/_delta_log/{1:020}.json", body)
        return append(*given, **named)

    monkeypatch.setattr(DeltaCatalog, "append", late)
    waited: list[float] = []
    with pytest.raises(InvalidInput, match="without the table feature somethingNew, which"):
        place.publish(pause=waited.append)
    assert len(waited) == 1
    with pytest.raises(InvalidInput, match="without the table feature somethingNew, which"):
        check_table(place.settings, place.store, place.catalog)


def test_what_delta_rs_refuses_for_good_is_no_conflict(endpoint, tmp_path, monkeypatch):
    """Also where nobody here has thought of it: the table is at the version that was read."""
    place = made(endpoint, tmp_path, "for-good", "delta", delta(features=("somethingNew",)))
    monkeypatch.setattr("compactor.catalogs.delta.refusal_of", lambda _: "")
    place.commit(A, id=[1])
    waited: list[float] = []
    with pytest.raises(InvalidInput, match=r"it says: Unsupported table features required:"):
        place.publish(pause=waited.append)
    assert waited == []
