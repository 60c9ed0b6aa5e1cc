from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdk.bundling import TABLES_LOCK, _roots, _without
from compactor.errors import InvalidInput
from compactor_dev.lock_selection import select
from compactor_dev.spark_bundle import LOCK as LAMBDA_LOCK

LOCK = """\
# This lock was written by hand.
client==1.0 \\
    --hash=sha256:11
    # via
    #   -c other.txt
    #   project (pyproject.toml)
    #   tool
core-lib==2.0 ; sys_platform == 'linux' \\
    --hash=sha256:22 \\
    --hash=sha256:23
    # via client
shared.part==3.0 \\
    --hash=sha256:33
    # via
    #   core-lib
    #   tool
tool==4.0 \\
    --hash=sha256:44
    # via project (pyproject.toml)
"""


def names(lock: str) -> list[str]:
    return re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)


@pytest.mark.parametrize(
    ("roots", "without", "kept"),
    [
        (["client"], [], ["client", "core-lib", "shared.part"]),
        (["tool"], [], ["client", "core-lib", "shared.part", "tool"]),
        (["tool"], ["client"], ["shared.part", "tool"]),
        (["tool", "client"], ["client"], ["shared.part", "tool"]),
        (["client"], ["core-lib"], ["client"]),
        (["shared.part"], [], ["shared.part"]),
        ([], [], []),
    ],
)
def test_a_requirement_brings_along_what_it_needs_and_nothing_else(roots, without, kept):
    assert names(select(LOCK, roots, without)) == kept


def test_a_bundle_of_functions_has_nothing_of_catalogs_that_they_do_not_reach():
    lock = names(
        select(TABLES_LOCK.read_text(encoding="utf-8"), _roots(table=True), _without(table=True))
    )
    assert "pyiceberg" in lock
    assert not {"sqlalchemy", "thrift"} & set(lock)


@pytest.mark.parametrize(("maintenance", "there"), [(False, True), (True, False)])
def test_the_functions_that_write_rows_always_have_arrow(maintenance, there):
    roots = _roots(table=False, maintenance=maintenance)
    lock = names(select(LAMBDA_LOCK.read_text(encoding="utf-8"), roots, _without(table=False)))
    assert ("pyarrow" in lock) is there


def test_versions_hashes_and_markers_stay_as_the_lock_has_them():
    start, end = LOCK.index("core-lib=="), LOCK.index("tool==")
    assert select(LOCK, ["core-lib"]) == LOCK[start:end]


@pytest.mark.parametrize(("roots", "without"), [(["clint"], []), (["client"], ["clint"])])
def test_a_name_that_the_lock_does_not_have_is_refused(roots, without):
    with pytest.raises(InvalidInput, match="'clint' is not accepted"):
        select(LOCK, roots, without)


def test_the_projects_own_lock_is_read_whole(repo_root: Path):
    lock = (repo_root / "requirements.txt").read_text()
    declared = re.findall(r"^([a-z0-9-]+)==.*(?:\n .*)*\(pyproject\.toml\)", lock, re.MULTILINE)
    assert len(declared) >= 9
    assert names(select(lock, declared)) == names(lock)
