"""Outputs of sources as they are stored, and what they give back."""

from __future__ import annotations

from collections.abc import Sequence

from compactor.log.entries import Commit, Output
from compactor.log.log import CommitLog
from compactor.outputs.restore import Found, restore
from tests.support.examples import PARTITION
from tests.support.world import World


def commits(world: World) -> list[Commit]:
    """All of the example partition."""
    return list(CommitLog(world.store, world.settings, PARTITION).every_commit())


def only(world: World) -> tuple[Commit, Output, bytes]:
    """The one commit there is, its output, and the bytes of that."""
    (commit,) = commits(world)
    assert commit.output is not None
    return commit, commit.output, world.store.contents("lake")[commit.output.key]


def given_back(world: World, commit: Commit, wanted: Sequence[int], **how: bool) -> list[bytes]:
    """What the sources with these numbers held; ``how`` as for ``restore``."""
    found = Found(commit, tuple(commit.rows[n] for n in wanted))
    return [b"".join(pieces) for _, pieces in restore(found, world.store, **how)]
