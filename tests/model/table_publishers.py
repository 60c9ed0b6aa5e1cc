"""A model of two publishers to one table, small enough to visit every reachable state.

Modelled with one request per step: publishers (read the table log, read the table, commit named
outputs, find unnamed ones in a partition's commit log, name them, commit to the table, mark), a
clean-up that checks the table before it deletes, and a worker that finds an output neither readable
nor pending. The table is swapped from one snapshot to the next, as in Iceberg; our own metadata is
the number of the last published entry, and the snapshot that set it. A process that takes no
further step has crashed or sleeps. In each state all may be dead; then a last worker, a last
publisher and a last clean-up must restore a good state.

A start lists the events that may happen: outputs are committed, uploads are lost, others append to
the table, compact it, overwrite a file, expire its snapshots (which deletes outputs), roll it back,
or restore it from a backup; requests arrive after their sender gave up. Answers may be lost any
number of times.

Not modelled: several partitions; checkpoints of the table log; outputs that do not fit and are set
aside; acceptance of a changed table; creating a table; rows with a key; Delta's own rules; expiry
that leaves some of the snapshots. The commit log behaves as the other model shows. These are one
step each, because what they read is written once: LIST of a log with the GETs of its entries, a
table with the manifests of its snapshots.

If two guards keep one promise, only removing both leads to a fault; the tests list such pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.model.processes import NOTHING, Processes, Rules, State
from tests.model.table_worker import Worker, ask_table_log, rebuild, settle
from tests.model.table_world import (
    EVENTS,
    TAKEN,
    WRITES,
    Commit,
    Entry,
    Services,
    Table,
    World,
    replaced_in,
)

#: Every guard that can be removed, and what happens without it.
GUARDS = {
    "condition of the table's commit": "files are put on top of whatever the table is",
    "condition on metadata": "files are put on top of the snapshot that was read, whatever changed",
    "look at the table's number": "a commit that was refused, or not answered, is sent again",
    "create-if-absent of entries": "an entry is written over what has its number",
    "look at what others named": "outputs are named although the log has gone on since",
    "output is readable": "outputs are named as soon as they are committed",
    "look at the log after its outputs": "what was replaced since the log was listed is not seen",
    "the same output under a later commit": "a replacement is given to the table again",
    "void commits with what replaces them": "a void commit is passed by itself",
    "ask the table log before a rebuild": "an output that the table deleted is built again",
    "table before delete": "clean-up deletes what is committed",
    "rows before delete": "clean-up believes the number alone",
    "what a commit says of itself": "clean-up takes every change with as many rows for a rewrite",
    "snapshot that said so": "a rollback is not looked for",
    "mark": "a number that went back is believed",
}


class Publisher(NamedTuple):
    """A publisher between two requests.

    Attributes:
        log, mark: what it knows of the table log.
        table: the table as last read.
        commits: the partition's commits as listed.
        number: the number of the commit, or entry, that it is at.
        before: the last commit that the table log covered when it listed the commits.
        pending, outputs, reached: outputs found in commits that are not passed yet, outputs to
            name, and the last commit that these cover.
        draft: the entry that it wants to write.
        drafts: the number of drafts that it has made.
    """

    name: str
    at: str = "load_log"
    log: tuple[Entry, ...] = ()
    mark: int = 0
    table: Table = Table()
    looks: bool = False
    commits: tuple[Commit, ...] = ()
    number: int = 0
    before: int = 0
    pending: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    reached: int = 0
    draft: Entry | None = None
    drafts: int = 0

    def to(self, at: str, **changed: Any) -> Publisher:
        return self._replace(at=at, **changed)

    def stopped(self) -> Publisher:
        return Publisher(self.name, "stopped")

    @property
    def gone_through(self) -> int:
        """The number of the last commit that the table log covers."""
        return self.log[-1].reached if self.log else 0


def learn(p: Any, s3: Services, *, whole: bool = False) -> Any:
    """Load the entries that are new to a publisher or clean-up; with ``whole``, also the mark."""
    log, mark = s3.list_log()
    if whole:
        p = p._replace(mark=mark)
    return p._replace(log=(*p.log, *log[len(p.log) :]))


def load_log(p: Publisher, s3: Services) -> Publisher:
    p = learn(p, s3, whole=True)
    return p if p.at == "stopped" else p.to("look")


def look(p: Publisher, s3: Services) -> Publisher:
    p = p._replace(table=s3.load_table())
    if p.table.last > len(p.log):
        return p.to("look_at_log")
    return bring_in(p, s3)


def look_at_log(p: Publisher, s3: Services) -> Publisher:
    """Reload the log: others have named and published more since it was read."""
    p = learn(p, s3)
    return p if p.at == "stopped" else bring_in(p, s3)


def is_known(p: Any, without: frozenset[str]) -> bool:
    """Return whether the table agrees with its log."""
    if p.table.last > len(p.log):
        return False
    if p.table.last < p.mark and "mark" not in without:
        return False
    return not p.table.is_rolled_back or "snapshot that said so" in without


def bring_in(p: Publisher, s3: Services) -> Publisher:
    """Choose a publisher's next request after it has read the table."""
    if not is_known(p, s3.without):
        return p.stopped()
    if p.table.last < len(p.log):
        return p.to("swap", number=0)
    if p.table.last > p.mark:
        return p.to("mark_number")
    return find(p)


def swap(p: Publisher, s3: Services) -> Publisher:
    """Try to commit once, then read the table again, whatever the answer was."""
    outputs = tuple(one for entry in p.log[p.table.last :] for one in entry.outputs)
    answer = s3.swap_table(p.table, outputs, len(p.log))
    if "look at the table's number" in s3.without:
        return p.to("swap_again") if answer == TAKEN else p.to("look")
    return p.to("look", number=0)


def swap_again(p: Publisher, s3: Services) -> Publisher:
    """Wrongly send the same commit again, on top of the current table."""
    return p.to("swap", table=s3.load_table()._replace(last=p.table.last))


def mark_number(p: Publisher, s3: Services) -> Publisher:
    s3.create_mark(p.table.last)
    return find(p._replace(mark=p.table.last))


def find(p: Publisher) -> Publisher:
    return p.to("list_commits", commits=(), number=0, pending=(), outputs=(), reached=0, draft=None)


def list_commits(p: Publisher, s3: Services) -> Publisher:
    commits, before = s3.list_commits(), p.gone_through
    return next_commit(
        p._replace(commits=commits, before=before, number=before, pending=(), outputs=()), s3
    )


def next_commit(p: Publisher, s3: Services) -> Publisher:
    """Go through the remaining commits until an output must be checked."""
    replaced = replaced_in(p.commits)
    given = {one for entry in p.log for one in entry.outputs}
    given |= {one.output for one in p.commits if 0 < one.replaces <= p.before}
    if "the same output under a later commit" in s3.without:
        given = set()
    while p.number < len(p.commits):
        p = p._replace(number=p.number + 1)
        output = p.commits[p.number - 1].output
        if output and output not in given and p.number not in replaced:
            if "output is readable" not in s3.without:
                return p.to("head")
            p = p._replace(pending=(*p.pending, output))
        p = passed(p, s3)
    return found_all(p)


def passed(p: Publisher, s3: Services) -> Publisher:
    """Pass a commit; a void one is only passed together with the one that replaces it."""
    replaced = replaced_in(p.commits)
    until = max(replaced.get(one, 0) for one in range(p.before + 1, p.number + 1))
    if p.number < until and "void commits with what replaces them" not in s3.without:
        return p
    return p._replace(outputs=p.outputs + p.pending, pending=(), reached=p.number)


def head(p: Publisher, s3: Services) -> Publisher:
    output = p.commits[p.number - 1].output
    if not s3.head_output(output):
        return found_all(p)
    return next_commit(passed(p._replace(pending=(*p.pending, output)), s3), s3)


def found_all(p: Publisher) -> Publisher:
    return p.to("look_on") if p.outputs else Publisher(p.name, "done")


def look_on(p: Publisher, s3: Services) -> Publisher:
    """List again if a commit was replaced since: its replacement may have the same output."""
    commit = s3.head_commit(len(p.commits) + 1)
    looks = "look at the log after its outputs" not in s3.without
    if commit is not None and commit.replaces > p.before and looks:
        return p.to("list_commits")
    draft = Entry(f"{p.name}{p.drafts + 1}", p.outputs, p.reached)
    return p.to("name", draft=draft, drafts=p.drafts + 1, commits=(), outputs=(), number=0)


def name(p: Publisher, s3: Services) -> Publisher:
    assert p.draft is not None
    number = len(p.log) + 1
    if s3.create_entry(number, p.draft) == TAKEN:
        return p.to("name_again")
    return bring_in(p._replace(log=(*p.log, p.draft), draft=None), s3)


def name_again(p: Publisher, s3: Services) -> Publisher:
    """Reload the log: the entry may be its own, with a lost answer, or another publisher's."""
    draft, p = p.draft, learn(p, s3)
    if p.at == "stopped":
        return p
    if draft not in p.log and "look at what others named" in s3.without:
        return p.to("name")
    return bring_in(p._replace(draft=None), s3)


class Cleaner(NamedTuple):
    """A clean-up between two requests.

    Attributes:
        commits: the partition's commits as listed.
        log, mark: what it knows of the table log.
        table: the table as read.
        due: records whose sources it is about to delete.
    """

    name: str
    at: str = "survey"
    commits: tuple[Commit, ...] = ()
    log: tuple[Entry, ...] = ()
    mark: int = 0
    table: Table = Table()
    due: tuple[str, ...] = ()

    def to(self, at: str, **changed: Any) -> Cleaner:
        return self._replace(at=at, **changed)

    def stopped(self) -> Cleaner:
        return Cleaner(self.name, "stopped")


def survey(c: Cleaner, s3: Services) -> Cleaner:
    return c.to("load_log_for_clean_up", commits=s3.list_commits())


def load_log_for_clean_up(c: Cleaner, s3: Services) -> Cleaner:
    c = learn(c, s3, whole=True)
    return c if c.at == "stopped" else c.to("look_for_clean_up")


def look_for_clean_up(c: Cleaner, s3: Services) -> Cleaner:
    c = c._replace(table=s3.load_table())
    if c.table.last > len(c.log):
        return c.to("look_at_log_for_clean_up")
    return decide(c, s3)


def look_at_log_for_clean_up(c: Cleaner, s3: Services) -> Cleaner:
    c = learn(c, s3)
    return c if c.at == "stopped" else decide(c, s3)


def decide(c: Cleaner, s3: Services) -> Cleaner:
    """Choose the sources to delete: their output was published to the table and its rows exist."""
    if not is_known(c, s3.without):
        return c.stopped()
    replaced, due = replaced_in(c.commits), []
    reached = max((one.reached for one in c.log[: c.table.last]), default=0)
    for number, commit in enumerate(c.commits, 1):
        if not commit.output or number in replaced:
            continue
        is_in = number <= reached or "table before delete" in s3.without
        if is_in and has_rows(c, commit.output, s3.without):
            due.append(commit.output)
    if not due:
        return Cleaner(c.name, "done")
    wrong = [one for one in due if one not in c.table.now.records]
    if wrong:
        s3.now(fault=f"clean-up deletes the source of {wrong[0]}, which the table does not have")
    return Cleaner(c.name, "delete", due=tuple(due))


def has_rows(c: Cleaner, output: str, without: frozenset[str]) -> bool:
    if without & {"rows before delete", "table before delete"}:
        return True
    return c.table.has_rows_of(output, any_change="what a commit says of itself" in without)


def delete(c: Cleaner, s3: Services) -> Cleaner:
    s3.delete_source(c.due[0])
    return c._replace(due=c.due[1:]) if c.due[1:] else Cleaner(c.name, "done")


# Events, and the checks of a state.


def _happens(state: State, event: str) -> Iterator[tuple[str, State]]:
    world = state.world
    for words, changed in EVENTS[event](world):
        yield words, state.used(event, world=world._replace(**changed))


def _fault_in(world: World) -> str:
    """Return what a query of the table finds wrong, or which records are lost."""
    found = world.table.now.records
    twice = {one for one in found if found.count(one) > 1}
    if twice:
        return f"{'+'.join(sorted(twice))} is in the table twice"
    missing = {file for file, _ in world.table.now.files if len(file) == 1} - world.outputs
    if missing:
        return f"the table names {'+'.join(sorted(missing))}, which is no object"
    written = {one.output for one in world.commits if one.output}
    lost = (written | world.foreign) - world.sources - set(found) - world.removed
    return (
        f"{'+'.join(sorted(lost))} is neither in a source nor in the table" if lost else world.fault
    )


def _made_good(world: World) -> str:
    there = set(world.table.now.records)
    left = {one for one in world.outputs if one not in there | world.removed}
    return f"{'+'.join(sorted(left))} never came into the table" if left else ""


def table_publishers(
    *, loses_answers: bool = False, all_may_die: bool = True, without: frozenset[str] = NOTHING
) -> Processes:
    """Return the model, without the given guards."""
    functions = (
        *(load_log, look, look_at_log, swap, swap_again, mark_number, list_commits),
        *(head, look_on, name, name_again, survey, load_log_for_clean_up, look_for_clean_up),
        *(look_at_log_for_clean_up, delete, settle, ask_table_log, rebuild),
    )
    last = Worker("last worker"), Publisher("last publisher"), Cleaner("last clean-up")
    rules = Rules(Services, functions, WRITES, _happens, _fault_in, last, _made_good)
    return Processes(rules, loses_answers=loses_answers, all_may_die=all_may_die, without=without)
