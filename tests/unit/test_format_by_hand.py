"""The rules of docs/format.md, followed by hand: a stored state is read without the product.

What computes, in ``tests/support/format_by_hand.py``, shares nothing with the product. Its
functions are called only where the stored state has too few cases, for what they return.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.aws.registry_rows import head_key, item_key
from compactor.log.encoding import encode_checkpoint, encode_commit
from compactor.log.entries import Commit, Output
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.log.state import LogState
from compactor.model import (
    Compression,
    Format,
    Partition,
    Quarantined,
    QuarantineReason,
    SourceObject,
)
from compactor.outputs.detection import decided_by
from compactor.planning.packing import make_group
from compactor.readers.manifests import manifest_prefix
from compactor.settings.settings import Settings
from compactor.settings.tables import parse_table
from compactor_tables.document_keys import table_id
from tests.support.examples import ON_LINES
from tests.support.format_by_hand import (
    STATE,
    Fold,
    Json,
    State,
    blake,
    group_id,
    partition_id,
    restored,
    settings_name,
    totals,
)
from tests.support.format_document import blocks_of
from tests.support.stored_state import load

DOCUMENT = Path(__file__).parents[2] / "docs" / "format.md"


@pytest.fixture(scope="module")
def state() -> State:
    return State()


def require_folds(state: State) -> int:
    """How many checkpoints there are, each of them the fold of the entries before it."""
    compared = 0
    for path, log in state.logs.items():
        fold = Fold()
        for entry in log:
            fold.add(entry)
            name = f"partitions/{path}commits/{entry['sequence']:020d}.checkpoint.json.gz"
            if ("lake", STATE + name) in state.bodies:
                require_fold(state.document(name), fold, path)
                compared += 1
    return compared


def require_fold(found: Json, fold: Fold, path: str) -> None:
    runs = found.pop("runs")
    assert found == {**fold.document, "path": path}, path
    assert list(runs) == list(fold.runs)[-8:]
    for run_id, told in runs.items():
        expected = {**totals(fold.runs[run_id]), "lines": fold.lines[run_id][:100]}
        assert {field: told[field] for field in expected} == expected, path


def test_every_checkpoint_is_the_fold_of_the_entries_before_it(state: State) -> None:
    assert require_folds(state) >= 10


def test_so_are_those_of_a_run_that_voids_an_entry() -> None:
    stored = load()
    stored.run()
    found = State()
    found.bodies = {("lake", key): body for key, body in stored.store.contents("lake").items()}
    replaced = [entry["sequence"] for _, entry in found.entries() if entry["replaces"]]
    assert replaced
    assert require_folds(found) > require_folds(State())


def test_what_a_void_entry_left_alone_stays_so() -> None:
    one, two, three = (SourceObject("source", f"a/{n}", f"e{n}", 5, 0.0) for n in range(3))
    output = Output("lake", "a/o", "u", (), 5, 7, 5, 1, Format.TEXT, Compression.NONE)
    left = (
        Quarantined(two, QuarantineReason.UNKNOWN_FORMAT, "?"),
        Quarantined(three, QuarantineReason.ACCESS_DENIED, "?"),
    )
    row = ManifestRow(one, 0, 5, 5, 9, SliceFacts(1))
    first = Commit(1, "c1", "run", 1.0, "source", "g", output, (row,), left, decided_by="d")
    void = replace(first.voided("run"), sequence=2)
    product, fold = LogState(), Fold()
    for commit in (first, void):
        product.add(commit)
        fold.add(json.loads(gzip.decompress(encode_commit(commit))))
    require_fold(json.loads(gzip.decompress(encode_checkpoint(product, "a/"))), fold, "a/")
    assert fold.committed == set()
    assert (len(fold.quarantined), len(fold.passing)) == (1, 1)


def test_every_entry_names_the_identity(state: State) -> None:
    log_id = state.document("identity.json")["log_id"]
    assert {entry["log_id"] for _, entry in state.entries()} == {log_id}


def test_every_group_id_and_output_key_follows_from_settings_and_sources(state: State) -> None:
    compared = 0
    for path, entry in state.entries():
        output, columns = entry["output"], entry["manifest"]
        # What an entry leaves alone was planned for the group, nobody knows at which place.
        if output is None or entry["quarantined"]:
            continue
        settings = state.document(f"runs/{entry['run_id']}/settings.json")
        sources = [
            (entry["source_bucket"], key, etag)
            for key, etag in zip(columns["key"], columns["etag"], strict=True)
        ]
        found = group_id(settings, sources, copied=output["copied"])
        assert entry["group_id"] == found, path
        ends = {"csv": ".csv", "text": ".log", "parquet": ".parquet", None: ".log"}
        end = ends.get(output["format"], ".json") + {"gzip": ".gz"}.get(output["compression"], "")
        assert output["key"] == f"compacted/{path}compacted-{found}{end}"
        compared += 1
    assert compared >= 8


def test_every_output_is_its_parts_and_has_their_checksums(state: State) -> None:
    compared = 0
    for _, entry in state.entries():
        one = entry["output"]
        if one is None or (one["bucket"], one["key"]) not in state.bodies:
            continue
        body, listed = (
            state.bodies[one["bucket"], one["key"]],
            state.listed[one["bucket"], one["key"]],
        )
        if one["columnar"] is None:
            metadata = {"compactor-log": entry["log_id"], "compactor-group": entry["group_id"]}
            assert listed["metadata"] == metadata
        assert (len(body), sum(part["size"] for part in one["parts"])) == (one["size"],) * 2
        assert one["crc32"] in {zlib.crc32(body), None}
        begin, sums = 0, b""
        for part in one["parts"]:
            piece = body[begin : begin + part["size"]]
            assert part["crc32"] in {zlib.crc32(piece), None}
            assert part["etag"] == hashlib.md5(piece, usedforsecurity=False).hexdigest()
            sums += bytes.fromhex(part["etag"])
            begin += part["size"]
        etag = f"{hashlib.md5(sums, usedforsecurity=False).hexdigest()}-{len(one['parts'])}"
        assert listed["etag"] == etag
        compared += 1
    assert compared >= 10


def test_every_source_is_restored_from_its_output(state: State) -> None:
    restorable = 0
    for _, entry in state.entries():
        one, columns = entry["output"], entry["manifest"]
        body = one and state.bodies.get((one["bucket"], one["key"]))
        if not body or one["columnar"] is not None:
            continue
        plain = gzip.decompress(body) if one["compression"] == "gzip" else body
        for number, key in enumerate(columns["key"]):
            original = state.originals[key, columns["etag"][number]]
            if original[:2] == b"\x1f\x8b" and not one["copied"]:
                original = gzip.decompress(original)
            found = restored(columns, number, plain)
            assert found == original, key
            assert columns["plain_bytes"][number] in {len(found), None}
            assert columns["crc32"][number] in {zlib.crc32(found), None}
            restorable += 1
    assert restorable >= 15


def test_names_in_keys_follow_from_what_they_name(state: State) -> None:
    paths = {
        one["path"]
        for name in state.names()
        if name.endswith("/items.json")
        for one in state.document(name)
    }
    receipts = {
        name.rpartition("/")[2] for name in state.names() if re.match("runs/.*/receipts/", name)
    }
    assert receipts == {f"{partition_id(path)}.json" for path in paths}
    (probe,) = (name for name in state.names() if name.startswith("probes/"))
    asked = state.document(probe)
    assert probe == f"probes/{blake(16, asked['endpoint']).hex()}.json"


def test_a_quarantine_names_its_settings(state: State) -> None:
    names = {entry["decided_by"] for _, entry in state.entries()} - {""}
    name = settings_name(state.document("runs/run-1/settings.json"))
    assert names == {name}


SETTINGS = [
    {},
    {"format": "text", "compression": "zstd"},
    {"formats": ON_LINES},
    {"formats": [{"match": "a/Größe*", "format": "text", "encoding": "single_byte"},
                 {"match": "a/*", "format": "csv", "header": False, "delimiter": ";"}]},
    {"output_format": "parquet"},
    {"output_format": "parquet", "parquet_schema": "id bigint"},
    {"format": "parquet"},
    {"output_format": "parquet", "table": "glue:lake.events", "upsert_key": ["id"],
     "order_by": ["at"]},
]  # fmt: skip


@pytest.mark.parametrize("given", SETTINGS)
@pytest.mark.parametrize("copied", [False, True])
def test_group_ids_are_those_of_the_rule_under_any_settings(given: Json, copied: bool) -> None:
    settings = Settings.from_input(
        {"s3_source_uri": "s3://source/", "s3_destination_uri": "s3://lake/out/", **given}
    )
    sources = [("source", "a/1.json", "e1"), ("source", "a/Größe.json", "e2")]
    group = make_group([SourceObject(*one, 1, 0.0) for one in sources], settings, copy=copied)
    assert group.id == group_id(settings.to_dict(), sources, copied=copied)
    assert decided_by(settings) == settings_name(settings.to_dict())


def test_the_example_of_the_document_follows_its_own_rules() -> None:
    shown = {
        name: json.loads(body) for name, body in blocks_of(DOCUMENT.read_text("utf-8"), "json")
    }
    entry, settings = shown["Entry"], shown["settings"]
    columns = entry["manifest"]
    sources = [("source", *one) for one in zip(columns["key"], columns["etag"], strict=True)]
    assert entry["group_id"] == group_id(settings, sources, copied=False)
    assert entry["output"]["key"] == f"compacted/csv/compacted-{entry['group_id']}.csv"
    assert entry["log_id"] == shown["Identity"]["log_id"]


def test_rows_of_the_registry_have_the_keys_of_the_rule() -> None:
    partition = Partition("source", "logs/a/", "a/")
    shard = zlib.crc32(b"1.json") % 8
    assert item_key("s", partition, "1.json") == {"pk": f"s/{shard}/a/", "sk": "/1.json"}
    long = "n" * 901
    expected = {"pk": "s/long/a/", "sk": f"/{blake(16, long).hex()}"}
    assert item_key("s", partition, long) == expected
    assert head_key("s", "a/") == {"pk": f"s/heads/{zlib.crc32(b'a/') % 8}", "sk": "/a/"}


def test_names_of_tables_and_root_partitions_follow_the_rule() -> None:
    table = parse_table("glue:bronze.events")
    assert table_id(table) == blake(16, "glue:bronze.events").hex()
    for path in ("", "a/b/", "x" * 99 + "/"):
        assert Partition("source", path, path).id == partition_id(path)
    settings = Settings.from_input(
        {"s3_source_uri": "s3://source/", "s3_destination_uri": "s3://lake/out/"}
    )
    assert settings.layout.identity == ("lake", "_compactor/out/identity.json")
    partition, switch = Partition("source", "a/b/", "a/b/"), "0" * 32
    below = f"compactor-readers/out/p-{partition_id('a/b/')}/{switch}/"
    assert manifest_prefix(settings, partition, switch) == ("lake", below)
