"""What is asked for before anything of an extra is started."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compactor.s3.store import make_client
from compactor.table_formats.installed import install_command
from compactor_cli.machine import extras
from compactor_cli.whole import Machine, run_here
from compactor_local.embedded import embedded_s3
from compactor_local.engine import Engine
from tests.support.examples import settings
from tests.support.moto_server import moto_server


@pytest.mark.parametrize("absent", ["moto", "flask", "antlr4", "aws_lambda_powertools"])
def test_nothing_is_started_when_a_part_of_an_extra_is_missing(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == absent else find(name))
    told = r"pip install 's3-compactor\[local\]'$"
    with pytest.raises(extras.ExtraMissing, match=told), embedded_s3():
        pass
    with pytest.raises(extras.ExtraMissing, match=told), Engine():
        pass


@pytest.mark.parametrize("given", [{"output_format": "parquet"}, {"format": "parquet"}])
def test_a_run_with_rows_asks_for_arrow_before_its_first_request(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "pyarrow" else find(name))
    nowhere = Machine(1, "http://127.0.0.1:1")
    with pytest.raises(extras.ExtraMissing, match=r"pip install 's3-compactor\[rows\]'$"):
        run_here(settings(**given), nowhere)


@pytest.mark.parametrize(
    ("origin", "named"),
    [
        (
            '{"archive_info": {}, "url": "file:///opt/me/a%20b/s3_compactor-1.0-py3-none-any.whl"}',
            "/opt/me/a b/s3_compactor-1.0-py3-none-any.whl[rows]",
        ),
        ('{"dir_info": {"editable": true}, "url": "file:///opt/me/s3-compactor"}', None),
        ('{"archive_info": {}, "url": "https://example.com/s3_compactor-1.0.whl"}', None),
        (None, None),
    ],
)
def test_an_extra_is_installed_from_the_wheel_that_the_program_came_from(
    monkeypatch: pytest.MonkeyPatch, origin: str | None, named: str | None
) -> None:
    installed = SimpleNamespace(read_text=lambda name: {"direct_url.json": origin}[name])
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: installed)
    assert install_command("rows") == f"pip install '{named or 's3-compactor[rows]'}'"


def test_nothing_is_imported_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "moto", raising=False)
    extras.require("local", "the demo")
    assert "moto" not in sys.modules


# A command, an optional package that it imports, and the command that installs it.
_ABSENT = [
    (("demo",), "moto", "s3-compactor[local]"),
    (
        ("run", "s3://source/logs/", "s3://lake/d/", "--output-format", "parquet"),
        "pyarrow",
        "[rows]",
    ),
    (("maintain", "plan", "sql:sqlite:///no.db#c:a.b"), "pyiceberg", "s3-compactor[iceberg]"),
    (("maintain", "plan", "sql:sqlite:///no.db#c:a.b"), "sqlalchemy", "pyiceberg[sql-sqlite]"),
    (("maintain", "plan", "delta:s3://lake/t/"), "pyarrow", "s3-compactor[rows]"),
]
_WITHOUT = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from compactor_cli.commands import main
sys.exit(main(sys.argv[2:]))
"""
_ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(sys.path),
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_REGION": "us-east-1",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        client = make_client(url)
        for bucket in ("lake", "source"):
            client.create_bucket(Bucket=bucket)
        client.put_object(Bucket="source", Key="logs/a.json", Body=b"{}")
        yield url


@pytest.mark.parametrize(("words", "absent", "way"), _ABSENT, ids=lambda one: str(one)[:40])
def test_a_package_that_is_missing_is_one_line_with_the_command_that_installs_it(
    words: tuple[str, ...], absent: str, way: str, tmp_path: Path, endpoint: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, absent, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**_ENVIRONMENT, "AWS_ENDPOINT_URL": endpoint},
        cwd=tmp_path,
    )
    assert done.returncode in (1, 2), done.stderr
    assert re.search(rf"pip install '[^']*{re.escape(way)}'", done.stderr), done.stderr
    assert done.stderr.count("\n") <= 2
