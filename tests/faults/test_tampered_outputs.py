"""Outputs changed, cut off or deleted by hand: ``compactor verify`` says which, and fails."""

from __future__ import annotations

import pytest

from tests.faults.fault_sources import partitions


def tamper(body: bytes) -> bytes:
    middle = len(body) // 2
    return body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]


def truncate(body: bytes) -> bytes:
    return body[:-1]


HARM = {"tampered with": tamper, "truncated": truncate, "deleted": None}


@pytest.fixture(scope="module")
def compacted(make_world):
    """A world that was compacted, and is sound."""
    made = make_world("tampered")
    made.seed(partitions(3, seed=31))
    made.must_be_proven()
    return made


@pytest.mark.parametrize("harm", HARM)
def test_verify_names_an_output_that_was_harmed_in_one_line(compacted, harm):
    world, change = compacted, HARM[harm]
    key = world.keys(world.lake, "compacted/")[1]
    body = world.body(key)
    if change is None:
        world.client.delete_object(Bucket=world.lake, Key=key)
    else:
        world.client.put_object(Bucket=world.lake, Key=key, Body=change(body))
    try:
        found = world.verify()
    finally:
        world.client.put_object(Bucket=world.lake, Key=key, Body=body)
    assert found.returncode == 1
    said = [line for line in (found.stdout + found.stderr).splitlines() if key in line]
    assert len(said) == 1, found
    assert "1 finding" in found.stderr


def test_verify_names_an_object_that_no_commit_names(compacted):
    world = compacted
    stray = "compacted/p-00/stray.json"
    world.client.put_object(Bucket=world.lake, Key=stray, Body=b"{}\n")
    found = world.verify()
    world.client.delete_object(Bucket=world.lake, Key=stray)
    assert found.returncode == 1
    assert f"{stray}: not named by any commit" in found.stdout + found.stderr
    assert world.verify().returncode == 0
