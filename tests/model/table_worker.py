"""A worker that settles the commit log of a partition while publishers run."""

from __future__ import annotations

from typing import NamedTuple

from tests.model.table_world import Services, replaced_in


class Worker(NamedTuple):
    """A worker that publishes committed outputs, and rebuilds those whose upload is lost."""

    name: str
    at: str = "settle"
    number: int = 0


def settle(w: Worker, s3: Services) -> Worker:
    """Complete the upload of the next commit; if there is none, HEAD its output."""
    replaced = replaced_in(s3.world.commits)
    for number, one in enumerate(s3.world.commits, 1):
        if number > w.number and one.output and number not in replaced:
            is_there = s3.publish_output(number)
            return w._replace(at="settle" if is_there else "ask_table_log", number=number)
    return w._replace(at="done")


def ask_table_log(w: Worker, s3: Services) -> Worker:
    log, _ = s3.list_log()
    is_given = any(one and w.number <= one.reached for one in log)
    if is_given and "ask the table log before a rebuild" not in s3.without:
        return w._replace(at="settle")
    return w._replace(at="rebuild")


def rebuild(w: Worker, s3: Services) -> Worker:
    s3.rebuild_output(w.number)
    return w._replace(at="settle")
