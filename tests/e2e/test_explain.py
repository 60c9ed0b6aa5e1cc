"""``compactor explain`` against an embedded S3: from a young source to a deleted one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from compactor_cli.commands import main
from compactor_local.embedded import EmbeddedS3
from tests.e2e.test_cli_commands import Lake

Command = Callable[..., dict[str, Any]]


@pytest.fixture
def lake(s3: EmbeddedS3) -> Lake:
    return Lake(s3, partitions=1)


@pytest.fixture
def explain(lake: Lake, capsys: pytest.CaptureFixture[str]) -> Command:
    def ask(key: str) -> dict[str, Any]:
        before = lake.keys()
        capsys.readouterr()
        assert main(["explain", lake.uris[1], key, *lake.endpoint, "--json"]) == 0
        assert lake.keys() == before, "explain only reads"
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return ask


def test_an_object_is_followed_from_its_arrival_to_its_deletion(
    lake: Lake, explain: Command
) -> None:
    options = (
        *lake.endpoint,
        "--depth",
        "1",
        "--delete-after",
        "1d",
    )
    assert main(["run", *lake.uris, *options, "--workers", "1"]) == 0
    lake.write("logs/p0/young.json", b"{}\n")
    young = explain("p0/young.json")
    assert (young["exists"], young["candidate"], young["reason"]) == (True, False, "too_young")
    old = explain(f"s3://{lake.bucket}/logs/p0/0.json")
    assert (old["candidate"], old["reason"]) == (False, "already_committed")
    output = old["output"].removeprefix(f"s3://{lake.bucket}/")
    line = old["lines"]["commit"]
    start = int(line.rpartition("from byte ")[2].split()[0].replace(",", ""))
    plain = lake.plain["logs/p0/0.json"]
    assert lake.read(output)[start : start + len(plain)] == plain
    assert old["lines"]["clean-up"].startswith("due from ")
    assert old["lines"]["clean-up"].endswith("by delete_after (1d)")
    of_output = explain(output)
    assert of_output["verified"] is True
    assert of_output["sequence"] == old["sequence"]
    fields = (*lake.endpoint, "--delete-after", "0d", "--yes", "--json")
    assert main(["clean-up", *lake.uris, *fields]) == 0
    gone = explain("p0/0.json")
    assert (gone["exists"], gone["reason"]) == (False, "gone")
    assert gone["lines"]["clean-up"].startswith("done at ")
