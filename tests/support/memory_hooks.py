"""How tests see the requests of the in-memory store, and interrupt them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    ``name`` is the port's method, but ``read_source`` and ``delete_source`` (one call per
    object); listings are called once per page, and ``key`` is their prefix.
    """

    name: str
    bucket: str
    key: str


class Crashed(BaseException):
    """The process died here; no ``except Exception`` catches it."""


@dataclass
class Hooks:
    """Called before a request takes effect, and after one that succeeded, outside any lock.

    What a hook raises reaches the caller of the store: raised before, the request never
    happened; raised after, it happened and its caller does not know. A hook may use the store.

    Attributes:
        during: called while an upload is being completed: its conditions were looked at, and
            nobody can read it yet. Whoever writes to its key now makes S3 answer 409.
        wire: given the body of a write, and returns what arrives of it. The checksum that was
            sent with it stays, so the store refuses what was damaged on its way.
    """

    before: list[Callable[[Call], None]] = field(default_factory=list)
    during: list[Callable[[Call], None]] = field(default_factory=list)
    after: list[Callable[[Call], None]] = field(default_factory=list)
    wire: list[Callable[[Call, bytes], bytes]] = field(default_factory=list)

    def crash(
        self, when: Literal["before", "after"], name: str, *, nth: int = 1, prefix: str = ""
    ) -> None:
        """Die before or after the nth request of this name, and of keys with this prefix.

        A dead process asks for nothing any more: every later request raises Crashed too, so
        that clean-up code of the caller cannot run. :meth:`clear` brings up a new process.
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
