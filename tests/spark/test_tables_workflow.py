"""The whole workflow of maintenance with real tables and this machine's Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import TableAddress, parse_table
from compactor.table_formats.iceberg_catalogs import iceberg_catalog
from compactor_cli import commands as cli
from compactor_cli.machine.spark_jars import JARS_VARIABLE
from compactor_local.embedded import EmbeddedS3, embedded_s3
from tests.support import server_builds
from tests.support.embedded import find_embedded

BUCKET = "lake"
TABLE = f"delta:s3://{BUCKET}/gold/orders/"
_WAREHOUSE = f"s3://{BUCKET}/silver"
_FILES, _ROWS = 6, 50


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    try:
        found = server_builds.table_jars()
    except server_builds.Unavailable as reason:
        pytest.skip(f"no jars of Iceberg and Delta: {reason}")
    directory = tmp_path / "jars"
    directory.mkdir()
    for jar in found:
        (directory / jar.name).symlink_to(jar)
    return directory


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(("rule", "engine"), [({}, "worker"), ({"engine": "spark"}, "spark")])
def test_small_files_of_both_formats_become_few_and_every_row_stays(
    rule: dict[str, str],
    engine: str,
    jars: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with embedded_s3() as s3:
        s3.create_bucket(BUCKET)
        find_embedded(s3, monkeypatch)
        monkeypatch.setenv(JARS_VARIABLE, str(jars))
        defaults = "spark.sql.shuffle.partitions 2\n"
        # VACUUM of Delta takes as many tasks as this, two hundred by default.
        (tmp_path / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        options = {"endpoint_url": s3.endpoint_url, "allow_http": "true", **_credentials(s3)}
        uri = TABLE.removeprefix("delta:")
        _write_small_files(uri, options)
        iceberg = _write_small_files_of_iceberg(tmp_path)
        rules = tmp_path / "rules.json"
        rules.write_text(json.dumps([{"match": ["*"], "closed_after_seconds": 0, **rule}]), "utf-8")
        state = f"s3://{BUCKET}/state/"
        words = [
            "maintain",
            "run",
            TABLE,
            iceberg.text,
            "--state-uri",
            state,
            "--policies",
            str(rules),
        ]
        log = tmp_path / "log"
        code = cli.main(
            [
                *words,
                "--endpoint-url",
                s3.endpoint_url,
                "--log",
                str(log),
                "--json",
            ]
        )
        told = json.loads(capsys.readouterr().out)
        assert code == 0, (told, log.read_text(encoding="utf-8")[-3_000:])

        tables = told["report"]["tables"]
        assert [one["table"] for one in tables] == [TABLE, iceberg.text]
        for one in tables:
            assert (one["status"], one["engine"], one["partitions"]) == ("done", engine, 2)
            assert (one["files"], one["into"], one["rows"]) == (2 * _FILES, 2, _FILES * _ROWS)
            assert one["estimate"]["files"] == one["files"]
        assert tables[0]["undo"] == f"{_FILES - 1}"
        _check_iceberg(iceberg, tables[1]["undo"])
        _check_delta(uri, options, 2)


def _check_delta(uri: str, options: dict[str, str], files: int) -> None:
    """So many files, with every row."""
    table = DeltaTable(uri, storage_options=options)
    assert len(table.file_uris()) == files
    ids = table.to_pyarrow_table()["id"].to_pylist()
    assert sorted(ids) == [*range(_FILES * _ROWS)]


def _write_small_files(uri: str, options: dict[str, str]) -> None:
    """Appends, each of which leaves a file in both partitions."""
    for number in range(_FILES):
        rows = {"id": range(number * _ROWS, (number + 1) * _ROWS), "day": ["1", "2"] * 25}
        write_deltalake(
            uri, pa.table(rows), mode="append", partition_by=["day"], storage_options=options
        )


def _write_small_files_of_iceberg(directory: Path) -> TableAddress:
    """The same in a catalog of this machine."""
    address = parse_table(f"sql:sqlite:///{directory}/catalog.db#prod:silver.orders")
    # It must outlive the catalog.
    store = S3Store(make_client())
    catalog = iceberg_catalog(address, store)
    catalog.create_namespace("silver")
    columns = pa.schema([("id", pa.int64()), ("day", pa.string())])
    table = catalog.create_table(address.name, columns, location=f"{_WAREHOUSE}/orders")
    with table.update_spec() as change:
        change.add_identity("day")
    for number in range(_FILES):
        ids = range(number * _ROWS, (number + 1) * _ROWS)
        table.append(pa.table({"id": ids, "day": ["1", "2"] * 25}, schema=columns))
    return address


def _check_iceberg(address: TableAddress, undo: str) -> None:
    """Two files with every row; the version before is tagged, and has them, too."""
    store = S3Store(make_client())
    table = iceberg_catalog(address, store).load_table(address.name)
    assert len(list(table.scan().plan_files())) == 2
    for snapshot in (None, int(undo)):
        ids = table.scan(snapshot_id=snapshot).to_arrow()["id"].to_pylist()
        assert sorted(ids) == [*range(_FILES * _ROWS)]


def _credentials(s3: EmbeddedS3) -> dict[str, str]:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")
    given = {name: s3.environment[name] for name in names if s3.environment.get(name)}
    return {"AWS_REGION": "us-east-1", **given}
