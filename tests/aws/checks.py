"""A check of the smoke test, and the list run in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from compactor.errors import CompactorError

if TYPE_CHECKING:
    from tests.aws.world import World

OK, KNOWN, FAILED, NOT_RUN = "ok", "known", "failed", "not run"


class CheckFailed(Exception):
    """AWS answered otherwise than expected; the message is its answer."""


class NotRun(Exception):
    """The check could not be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the smoke test.

    Attributes:
        name: shown, and by which other checks need it.
        function: returns if all is well.
        needs: names of the checks without which it proves nothing.
        known: why it is expected to fail; such a failure is no fault of the account.
    """

    name: str
    function: Callable[[World], None]
    needs: tuple[str, ...] = ()
    known: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one check."""

    name: str
    verdict: str
    why: str = ""

    @property
    def line(self) -> str:
        """``name: verdict: why`` on one line."""
        return ": ".join(filter(None, (self.name, self.verdict, " ".join(self.why.split()))))


def run_checks(checks: Iterable[Check], world: World) -> Iterator[Result]:
    """Run checks in their order, and yield each result as it is known."""
    good: set[str] = set()
    for check in checks:
        result = _run(check, world, good)
        if result.verdict == OK:
            good.add(check.name)
        yield result


def _run(check: Check, world: World, good: set[str]) -> Result:
    if lacking := [name for name in check.needs if name not in good]:
        return Result(check.name, NOT_RUN, f"it needs {lacking[0]!r} to be ok")
    if world.remaining_seconds <= 0:
        return Result(check.name, NOT_RUN, "the time of the test is over")
    try:
        check.function(world)
    except NotRun as error:
        return Result(check.name, NOT_RUN, str(error))
    except (CheckFailed, CompactorError, ClientError, BotoCoreError) as error:
        verdict = KNOWN if check.known else FAILED
        return Result(check.name, verdict, ": ".join(filter(None, (check.known, str(error)))))
    return Result(check.name, OK)
