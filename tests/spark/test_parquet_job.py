"""Runs that write rows, as spark-submit runs them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.outputs.verify import check_commit
from compactor_cli.commands.verify import check
from tests.spark.job import Job

Jobs = Callable[..., Job]


def parquet(prices: pa.Array) -> bytes:
    """A Parquet object with one column."""
    written = io.BytesIO()
    pq.write_table(pa.table({"price": prices}), written)
    return written.getvalue()


def test_parquet_whose_columns_clash_gets_outputs_of_its_own(new_job: Jobs) -> None:
    numbers, words = parquet(pa.array([1, 2, 3], pa.int32())), parquet(pa.array(["x"] * 3))
    job = new_job(format="parquet")
    job.seed(
        {
            "good/1.parquet": numbers,
            "good/2.parquet": numbers,
            "clash/1.parquet": numbers,
            "clash/2.parquet": words,
        }
    )
    job.discover()
    ended = job.run()
    assert ended.code == 0, ended.log[-3000:]
    good, clash = job.receipt("good/"), job.receipt("clash/")
    assert (good.status, good.counts.objects_in, good.counts.records) == ("done", 2, 6)
    assert (clash.status, clash.counts.objects_in, clash.counts.records) == ("done", 2, 6)
    assert sorted(key.split("/")[1] for key in job.outputs()) == ["clash", "clash", "good"]
    assert check(job.settings, job.store, sources=True).findings == []
    assert not job.uploads()


def test_records_become_rows_with_the_columns_that_the_first_run_found(new_job: Jobs) -> None:
    job = new_job(output_format="parquet")
    job.seed({f"a/{n:02d}.json": b'{"id": %d, "name": "x"}\n' % n for n in range(30)})
    job.seed({f"b/{n:02d}.json": b'{"id": %d}\n{"id": "y"}\n' % n for n in range(30)})
    job.discover()
    ended = job.run()
    assert ended.code == 0, ended.log[-3000:]
    receipts = [job.receipt("a/"), job.receipt("b/")]
    assert sum(one.counts.records + one.counts.dead_letters for one in receipts) == 90
    assert receipts[0].counts.requests["GET"] >= 30
    checked = check(job.settings, job.store, sources=True)
    assert checked.findings == []
    assert checked.records == sum(one.counts.records for one in receipts)
    assert [one.counts.dead_letters for one in receipts] == [0, 0]
    schemas = set()
    for path in ("a/", "b/"):
        partition = Partition(job.source, f"logs/{path}", path)
        for commit in CommitLog(job.store, job.settings, partition).every_commit():
            assert commit.output is not None
            assert commit.output.columnar is not None
            assert check_commit(commit, job.store) == commit.output.records
            schemas.add(commit.output.columnar.schema)
    (schema,) = schemas
    fields = [(one["name"], one["type"]) for one in json.loads(schema)["fields"]]
    assert fields == [("id", "string"), ("name", "string")]


def test_a_job_keeps_what_fits_no_row(new_job: Jobs) -> None:
    job = new_job(output_format="parquet", parquet_schema="id BIGINT")
    job.seed(
        {f"a/{n}.json": b'{"id": %d}\n{"id": %d, "more": 1}\n' % (n, 10 + n) for n in range(3)}
    )
    job.discover()
    ended = job.run()
    assert ended.code == 0, ended.log[-3000:]
    receipt = job.receipt("a/")
    assert (receipt.counts.records, receipt.counts.dead_letters) == (3, 3)
    assert (
        receipt.dead_letters == f"s3://{job.lake}/_compactor/compacted/partitions/a/dead-letters/"
    )
    checked = check(job.settings, job.store, sources=True)
    assert (checked.findings, checked.records, checked.dead_letters) == ([], 3, 3)
    assert not job.uploads()
