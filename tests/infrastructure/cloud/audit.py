"""Whether everything that was done was allowed to who did it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.infrastructure.cloud.iam import Call, Policies, Statement
from tests.infrastructure.cloud.recording import Request
from tests.infrastructure.cloud.requests import calls_of


@dataclass(frozen=True, slots=True)
class Audit:
    """What each sender did, and may do.

    Attributes:
        done: sender -> the uses of permissions that it made, each once.
        policies: sender -> what applies to its role.
    """

    done: Mapping[str, frozenset[Call]]
    policies: Mapping[str, Policies]

    def refused(self) -> list[str]:
        """Every use of a permission that its sender does not have, one line each."""
        return sorted(
            f"{sender}: {call}"
            for sender, calls in self.done.items()
            for call in calls
            if not self.policies[sender].allow(call)
        )

    def without(self, sender: str, statement: Statement) -> Audit:
        """The same with one statement taken out of a sender's role."""
        fewer = self.policies[sender].without(statement)
        return Audit(self.done, {**self.policies, sender: fewer})

    def taken_out(self) -> Iterator[tuple[set[str], set[str]]]:
        """For each statement: what is refused without it, and what it alone allows in its role."""
        for sender, policies in self.policies.items():
            for statement in policies.identity:
                others = [one for one in policies.identity if one is not statement]
                only = {
                    f"{sender}: {call}"
                    for call in self.done.get(sender, ())
                    if statement.covers(call) and not any(one.covers(call) for one in others)
                }
                yield {*self.without(sender, statement).refused()}, only


def uses(requests: Iterable[Request], keys: Mapping[str, str]) -> dict[str, frozenset[Call]]:
    """What was asked, as uses of permissions by sender."""
    found: dict[str, set[Call]] = {}
    for request in requests:
        found.setdefault(request.sender, set()).update(calls_of(request, keys))
    return {sender: frozenset(calls) for sender, calls in found.items()}
