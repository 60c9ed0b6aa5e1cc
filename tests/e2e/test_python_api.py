"""docs/python.md as it stands: every example is run, in order, against an embedded S3."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import compactor
from compactor.errors import IntegrityError, InvalidInput, PartitionsFailed
from compactor.s3.store import make_client
from compactor_local.embedded import EmbeddedS3, SeedObject
from tests.conftest import REPO_ROOT
from tests.support.embedded import find_embedded

PAGE = (REPO_ROOT / "docs" / "python.md").read_text("utf-8")
BLOCKS = re.findall(r"```python(| airflow)\n(.*?)```", PAGE, re.DOTALL)
SOURCE, DESTINATION = "s3://my-logs/raw/", "s3://my-lake/compacted/"
TENANTS, EACH = ("app", "web"), 3
LONG_AGO = time.time() - 60 * 86_400


def record(tenant: str, n: int) -> bytes:
    return b'{"tenant":"%s","n":%d}\n' % (tenant.encode(), n)


@pytest.fixture
def logs(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The buckets of the page, fresh, where boto3 finds them; a client."""
    find_embedded(s3, monkeypatch)
    client = make_client(s3.endpoint_url)
    seeds = [
        SeedObject(f"raw/{tenant}/{n}.json", record(tenant, n), LONG_AGO)
        for tenant in TENANTS
        for n in range(EACH)
    ]
    seeds += [SeedObject(f"raw/2026/01/31/{n}.json", record("day", n), LONG_AGO) for n in range(2)]
    s3.create_bucket("my-lake")
    s3.create_bucket("my-logs")
    for bucket in ("my-lake", "my-logs"):
        for key in keys(client, bucket):
            client.delete_object(Bucket=bucket, Key=key)
    s3.seed("my-logs", seeds)
    return client


def keys(client: Any, bucket: str, prefix: str = "") -> list[str]:
    listed = client.list_objects_v2(Bucket=bucket, Prefix=prefix)
    return [one["Key"] for one in listed.get("Contents", [])]


def test_every_example_of_the_page_works_as_it_stands(
    logs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for kind, code in BLOCKS:
        program = compile(code, "docs/python.md", "exec")
        if not kind:
            exec(program, names)  # noqa: S102 - the page's own examples
    told = capsys.readouterr().out
    assert "What a run would do now" in told
    assert f"Run {names['report'].run_id}: succeeded" in told
    assert "compacting: 3 of 3 3/3 partitions, 8 objects" in told
    assert names["verification"].sound
    assert (tmp_path / "restored/raw/app/0.json").read_bytes() == record("app", 0)
    # What was committed a moment ago is past no retention.
    assert names["due"].due == 0
    assert len(keys(logs, "my-logs")) == 8
    # The Airflow task's callable, without Airflow.
    assert names["compact_day"]("2026-01-31") == {"objects_in": 2, "objects_out": 1}
    assert names["compact_day"]("2026-01-31") == {"objects_in": 0, "objects_out": 0}


def test_the_page_shows_each_function_and_one_airflow_task() -> None:
    code = "".join(code for _, code in BLOCKS)
    for name in ("plan", "run", "verify", "restore", "clean_up"):
        assert f"compactor.{name}(" in code
    assert [kind for kind, _ in BLOCKS].count(" airflow") == 1


def test_failures_are_errors_that_a_program_can_use(logs: Any, tmp_path: Path) -> None:
    damaged = f"_compactor/compacted/partitions/web/commits/{1:020d}.json.gz"
    logs.put_object(Bucket="my-lake", Key=damaged, Body=b"no commit")
    with pytest.raises(PartitionsFailed, match=r"^web/: IntegrityError") as raised:
        compactor.run(SOURCE, DESTINATION, depth=1, workers=1, exclude=["2026/*"])
    report = raised.value.report
    assert isinstance(report, compactor.RunReport)
    assert [one.path for one in report.failed] == ["web/"]
    assert report.totals.objects_in == EACH, "the other partition is done"
    verification = compactor.verify(SOURCE, DESTINATION)
    with pytest.raises(IntegrityError, match="is damaged"):
        verification.check()
    with pytest.raises(InvalidInput, match=r"^keys: "):
        compactor.restore(DESTINATION, to=tmp_path)
    with pytest.raises(InvalidInput, match=r"^colour: "):
        compactor.plan(SOURCE, DESTINATION, colour="red")
    with pytest.raises(InvalidInput, match=r"^workers: "):
        compactor.run(SOURCE, DESTINATION, workers=0)


def test_clean_up_deletes_what_is_proven_and_only_on_request(logs: Any) -> None:
    compactor.run(SOURCE, DESTINATION, depth=1, workers=1)
    # A store's clock tells whole seconds.
    time.sleep(1.1)
    decided = compactor.clean_up(SOURCE, DESTINATION, delete_after="0d")
    assert (decided.due, decided.deleted, len(keys(logs, "my-logs"))) == (8, 0, 8)
    done = compactor.clean_up(SOURCE, DESTINATION, delete_after="0d", delete=True)
    assert (done.deleted, done.findings, keys(logs, "my-logs")) == (8, [], [])
    assert "8" in str(done)


def test_results_show_themselves_in_notebooks_with_nothing_unescaped(logs: Any) -> None:
    logs.put_object(Bucket="my-logs", Key="raw/<b>/x.bin", Body=b"\0" * 100)
    fields: dict[str, Any] = {"depth": 1, "settle_seconds": 0}
    plan = compactor.plan(SOURCE, DESTINATION, **fields)
    report = compactor.run(SOURCE, DESTINATION, workers=1, **fields)
    for result in (plan, report, compactor.verify(SOURCE, DESTINATION)):
        page = result._repr_html_()
        assert "<table>" in page
        assert "<b>/" not in page
    assert "such as raw/&lt;b&gt;/x.bin" in report._repr_html_()
    assert "such as raw/<b>/x.bin" in str(report)


def test_importing_the_package_loads_nothing_of_the_api() -> None:
    code = (
        "import compactor, sys; assert 'run' in dir(compactor);"
        "print(sorted(n for n in sys.modules if n.startswith(('boto', 'compactor'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['compactor']"
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        compactor.colour  # noqa: B018 - looking is what is tested
