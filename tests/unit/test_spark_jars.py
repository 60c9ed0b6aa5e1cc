"""The jars that a deployment ships are the ones that everything else merges with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from cdk.assets import spark_jar
from compactor.settings.tables import TableAddress
from compactor_bundling import spark_jars
from compactor_bundling.bundles import BundleError
from compactor_bundling.spark_jars import PINNED, PINNED_DELTA, fetch_jars, jar_name, pinned_jar
from compactor_cli.machine.spark_jars import (
    JARS_VARIABLE,
    PACKAGES_VARIABLE,
    packages_environment,
    table_packages,
)
from tests.support.examples import settings

_COORDINATE = "a.group:name:1.0"


def test_a_deployment_ships_what_compactor_run_and_the_tests_have(repo_root: Path) -> None:
    here = packages_environment(settings(table="glue:lake.people", upsert_key=["id"]))
    assert here[PACKAGES_VARIABLE].split(",") == [*PINNED]
    lock = (repo_root / "tests/support/servers/jars.txt").read_text(encoding="utf-8")
    delta = table_packages([TableAddress("delta", "s3://lake/t/")])[PACKAGES_VARIABLE]
    assert next(iter(PINNED_DELTA)) in delta.split(",")
    for coordinate, digest in {**PINNED, **PINNED_DELTA}.items():
        assert f"{coordinate} {digest}\n" in lock
        assert spark_jar(coordinate).fingerprint == digest


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the archive of ``_COORDINATE`` would be kept; its content shall be ``b"jar"``."""
    monkeypatch.delenv(JARS_VARIABLE, raising=False)
    digest = hashlib.sha256(b"jar").hexdigest()
    monkeypatch.setattr(spark_jars, "PINNED", {_COORDINATE: digest})
    monkeypatch.setattr(spark_jars, "_FETCHED_JARS", tmp_path / "fetched")
    return tmp_path


def _maven(brings: bytes, asked: list[Sequence[str]]) -> object:
    """A Maven that is none."""

    def run(command: Sequence[str]) -> None:
        asked.append(command)
        pom = Path(command[command.index("-f") + 1])
        assert "<artifactId>name</artifactId><version>1.0</version>" in pom.read_text("utf-8")
        (pom.parent / jar_name(_COORDINATE)).write_bytes(brings)

    return run


def test_an_archive_is_fetched_once_and_is_what_its_sum_says(
    pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[str]] = []
    monkeypatch.setattr(spark_jars, "_run_maven", _maven(b"jar", asked))

    assert pinned_jar(_COORDINATE).name == "name-1.0.jar"
    assert pinned_jar(_COORDINATE).read_bytes() == b"jar"
    assert len(asked) == 1


def test_another_archive_is_refused_wherever_it_comes_from(
    pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_jars, "_run_maven", _maven(b"another", []))
    with pytest.raises(BundleError, match=r"a\.group:name:1\.0 with SHA-256 .* expected"):
        pinned_jar(_COORDINATE)
    monkeypatch.setenv(JARS_VARIABLE, str(pinned / "given"))
    with pytest.raises(BundleError, match=r"name-1\.0\.jar has SHA-256 nothing"):
        pinned_jar(_COORDINATE)
    (pinned / "given").mkdir()
    (pinned / "given" / "name-1.0.jar").write_bytes(b"jar")
    assert pinned_jar(_COORDINATE).read_bytes() == b"jar"


def test_without_maven_it_is_said_what_else_would_do(
    pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(pinned))
    with pytest.raises(
        BundleError, match=r'COMPACTOR_SPARK_JARS .* spark_jars is "release"'
    ) as told:
        pinned_jar(_COORDINATE)
    assert "\n" not in str(told.value)


def test_a_fetch_says_how_commands_run(tmp_path: Path) -> None:
    class Refused(Exception):
        pass

    def run(_: Sequence[str]) -> None:
        raise Refused

    with pytest.raises(Refused):
        fetch_jars({_COORDINATE: "0"}, tmp_path, run)
