"""The same sources and settings give the same keys, the same bytes and the same requests."""

from __future__ import annotations

from copy import deepcopy

import pytest

from compactor.model import Format
from tests.golden.play import CASES, COMMAND, differences, golden, played

BEFORE = golden()


@pytest.mark.parametrize("name", CASES)
def test_keys_bytes_and_requests_are_those_of_the_earlier_versions(name: str) -> None:
    found = differences(name, BEFORE, {name: played(name)})
    assert not found, "\n".join(
        [
            *found,
            "Other keys or bytes are compacted beside what is there, never instead of it. If",
            f"that is meant, or the requests are, write golden.json anew: {COMMAND}",
        ]
    )


def test_every_format_is_played_and_nothing_else_is_kept() -> None:
    assert {*BEFORE} == {*CASES}
    assert {name.split()[0] for name in CASES} == {*Format} - {Format.PARQUET}
    assert all(one["counts"]["sources"] for one in BEFORE.values())


def test_outputs_of_several_sources_are_what_is_compared() -> None:
    outputs = {name: len(one["outputs"]) for name, one in BEFORE.items()}
    assert outputs.pop("json_lines in several outputs") == 3
    assert outputs.pop("text that S3 copies") == 2
    assert set(outputs.values()) == {1}
    assert BEFORE["text that S3 copies"]["requests"]["copy_part"] == 1


def test_a_difference_names_the_case_the_key_and_both_values() -> None:
    now = deepcopy({"text": BEFORE["text"]})
    ((key, digest),) = now["text"]["outputs"].items()
    now["text"] = {**now["text"], "outputs": {key: "other"}, "requests": {"get": 7}}
    found = differences("text", BEFORE, now)
    assert found[0] == f"text: outputs {key}: was {digest}, is other"
    assert "text: requests get: was 1, is 7" in found
    assert "text: requests upload_part: was 1, is gone" in found
    assert differences("text", {}, now)[0] == f"text: outputs {key}: was not there, is other"
