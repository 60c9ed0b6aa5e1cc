"""Hooks by which tests observe and interrupt the requests of the in-memory store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    ``name`` is the port's method, except ``read_source`` and ``delete_source``, one call per
    object. Listings are one call per page, with their prefix as ``key``.
    """

    name: str
    bucket: str
    key: str


class Crashed(BaseException):
    """The process died here; no ``except Exception`` catches it."""


@dataclass
class Hooks:
    """Functions that are called before a request takes effect and after it succeeded.

    They are called outside any lock and may use the store. What they raise reaches the caller of
    the store: if raised before, the request never happened; if raised after, it happened but the
    caller does not know.

    Attributes:
        during: called while an upload is being completed, after its conditions were checked and
            before it is readable. Any write to its key now makes S3 answer 409.
        wire: takes the body of a write, and returns what arrives. The checksum that was sent stays
            the same, so the store refuses a damaged body.
    """

    before: list[Callable[[Call], None]] = field(default_factory=list)
    during: list[Callable[[Call], None]] = field(default_factory=list)
    after: list[Callable[[Call], None]] = field(default_factory=list)
    wire: list[Callable[[Call, bytes], bytes]] = field(default_factory=list)

    def crash(
        self, when: Literal["before", "after"], name: str, *, nth: int = 1, prefix: str = ""
    ) -> None:
        """Die before or after the nth request with this name and a key with this prefix.

        A dead process sends nothing: every later request raises Crashed as well, so cleanup code of
        the caller has no effect. :meth:`clear` starts a new process.
        """
        seen = 0
        dead = False

        def die_when_due(call: Call) -> None:
            nonlocal seen, dead
            meant = call.name == name and call.key.startswith(prefix)
            seen += meant
            if meant and seen == nth:
                dead = True
                raise Crashed(f"{when} {call}")

        def stay_dead(call: Call) -> None:
            if dead:
                raise Crashed(f"already dead at {call}")

        self.before.append(stay_dead)
        (self.before if when == "before" else self.after).append(die_when_due)

    def clear(self) -> None:
        """Remove every hook."""
        self.before.clear()
        self.during.clear()
        self.after.clear()
        self.wire.clear()
