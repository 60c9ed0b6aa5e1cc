"""Processes that send one request per step, in any order, and the events between their steps.

A process is an immutable tuple whose ``at`` names its next request. The function of that name takes
the process and a service, sends the request, and returns the process after the answer. So one step
of the model is one request of any process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, NamedTuple

NOTHING: frozenset[Any] = frozenset()
_MOST_STEPS = 150
#: The event in which a write arrives only after its sender gave up on it, or never.
DELAYED = "request delayed"


class Request(NamedTuple):
    """A request, and its answer once there is one."""

    name: str
    args: tuple[Any, ...] = ()
    answer: Any = None

    def __str__(self) -> str:
        answer = "" if self.answer is None else f" -> {plain(self.answer)}"
        return f"{self.name}({', '.join(map(plain, self.args))}){answer}"


def plain(value: Any) -> str:
    """Return a value as traces show it."""
    if isinstance(value, frozenset):
        return "{" + " ".join(sorted(map(str, value))) + "}"
    if type(value) is tuple:
        return "[" + ", ".join(plain(one) for one in value) + "]"
    return "-" if value in {None, ""} else str(value)


def request(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a service a request, which the service records in ``asked``."""

    @wraps(method)
    def asked(self: Service, *args: Any) -> Any:
        answer = method(self, *args)
        self.asked = Request(method.__name__, args, answer)
        return answer

    return asked


class Service:
    """Answers requests, and keeps the world after them.

    Args:
        world: the world before the first request.
        without: the guards that are removed.
    """

    def __init__(self, world: Any, without: frozenset[str] = NOTHING) -> None:
        self.world, self.without = world, without
        self.asked = Request("")

    def now(self, **changed: Any) -> None:
        self.world = self.world._replace(**changed)


class State(NamedTuple):
    """A world, its processes, the events that may still happen, and the requests in flight."""

    world: Any
    actors: tuple[Any, ...]
    events: tuple[str, ...] = ()
    under_way: frozenset[Request] = NOTHING

    def used(self, event: str, **changed: Any) -> State:
        """Return the state after an event, with one fewer of it left."""
        at = self.events.index(event)
        return self._replace(events=self.events[:at] + self.events[at + 1 :], **changed)


class Step(NamedTuple):
    """One step of a trace; it is only put into words when printed."""

    who: str
    what: object
    how: str = ""

    def __str__(self) -> str:
        return f"{self.who}: {self.what}{self.how}"


class Rules(NamedTuple):
    """The parts of a model.

    Attributes:
        service: answers the requests.
        functions: the functions of the processes; ``at`` has the name of one.
        writes: requests whose answers may be lost, and that may arrive late.
        happens: yields every way in which an event may happen in a state: a description, and the
            state after it.
        fault_in: returns what is wrong with a world in one line; empty if nothing is.
        last: the processes that must restore a good state after all others died, in order.
        made_good: returns what is wrong with the world after those; empty if nothing is.
    """

    service: type[Service]
    functions: Iterable[Callable[[Any, Any], Any]]
    writes: frozenset[str]
    happens: Callable[[State, str], Iterator[tuple[str, State]]]
    fault_in: Callable[[Any], str]
    last: tuple[Any, ...]
    made_good: Callable[[Any], str]


class Processes:
    """The steps from a state, and the check of a state.

    Args:
        rules: the rules of the model.
        loses_answers: any write may take effect without an answer; then it is sent again.
        all_may_die: in each state all processes may die, and the last ones must then restore a
            good state.
        without: the guards that are removed.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        loses_answers: bool = False,
        all_may_die: bool = True,
        without: frozenset[str] = NOTHING,
    ) -> None:
        self._rules, self._without = rules, without
        self._loses_answers, self._all_may_die = loses_answers, all_may_die
        self._functions: Mapping[str, Any] = {one.__name__: one for one in rules.functions}
        self._known: dict[Any, str] = {}

    def steps(self, state: State) -> Iterator[tuple[Step, State]]:
        """Yield every step from a state: of each process, of requests in flight, and events."""
        for place, actor in enumerate(state.actors):
            if actor.at in self._functions:
                yield from self._step_of(state, place, actor)
        for late in state.under_way:
            service = self._rules.service(state.world, self._without)
            getattr(service, late.name)(*late.args)
            left = state.under_way - {late}
            label = Step("sent long ago", service.asked)
            yield label, state._replace(world=service.world, under_way=left)
        for event in dict.fromkeys(state.events):
            if event == DELAYED:
                continue
            for words, after in self._rules.happens(state, event):
                yield Step("meanwhile", words), after

    def _step_of(self, state: State, place: int, actor: Any) -> Iterator[tuple[Step, State]]:
        service = self._rules.service(state.world, self._without)
        after = self._functions[actor.at](actor, service)
        actors = (*state.actors[:place], after, *state.actors[place + 1 :])
        yield Step(actor.name, service.asked), state._replace(world=service.world, actors=actors)
        if service.asked.name not in self._rules.writes:
            return
        if self._loses_answers and service.world != state.world:
            label = Step(actor.name, service.asked, ", answer lost")
            yield label, state._replace(world=service.world)
        if DELAYED in state.events:
            late = service.asked._replace(answer=None)
            under_way = state.under_way | {late}
            label = Step(actor.name, late, ", which arrives later or never")
            yield label, state.used(DELAYED, under_way=under_way)

    def fault_of(self, state: State) -> str:
        """Return what is wrong with a state in one line; empty if nothing is."""
        if not state.world.spoiled:
            stopped = [one.name for one in state.actors if one.at == "stopped"]
            if stopped:
                return f"{stopped[0]} refuses to go on, and nothing is wrong"
        if state.world not in self._known:
            fault = self._rules.fault_in(state.world)
            if not fault and self._all_may_die:
                fault = self._after_all_died(state.world)
            self._known[state.world] = fault
        return self._known[state.world]

    def _after_all_died(self, world: Any) -> str:
        """Run the last processes undisturbed; return what is wrong after them."""
        for actor in self._rules.last:
            after, service = actor, self._rules.service(world, self._without)
            for _ in range(_MOST_STEPS):
                if after.at not in self._functions:
                    break
                after = self._functions[after.at](after, service)
                fault = self._rules.fault_in(service.world)
                if fault:
                    return f"{fault}, after all died and {actor.name} came"
            if after.at == "stopped":
                refused = f"{actor.name} refuses to go on, and nothing is wrong"
                return "" if world.spoiled else refused
            if after.at != "done":
                return f"{actor.name} does not come to an end"
            world = service.world
        return self._rules.made_good(world)
