"""How long a request is asked again, and when it is not; no time passes in these tests."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.s3 import retries
from compactor.s3.limiter import Limiter
from compactor.s3.retries import MOST_TRIES, Patience, Retries
from compactor.s3.translate import Again, Refusal, judged
from tests.support.s3_requests import NoTime

SLOW_DOWN = Refusal(503, "SlowDown", "Please reduce your request rate.")


@dataclass
class Left:
    """The time that an invocation has left."""

    seconds: float

    def remaining_seconds(self) -> float:
        return self.seconds


class Server:
    """Answers in its own time, always with the same."""

    def __init__(self, time: NoTime, answer: Exception | str, *, seconds: float = 0.0) -> None:
        self.time = time
        self.answer = answer
        self.seconds = seconds
        self.left: list[float] = []

    def __call__(self, left: float) -> str:
        self.left.append(left)
        self.time.now += min(self.seconds, max(0.0, left))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def time() -> NoTime:
    return NoTime()


def retries_on(time: NoTime, deadline_seconds: float = 120.0) -> Retries:
    return Retries(Limiter(8, clock=time.clock), time.patience(deadline_seconds))


def busy(refusal: Refusal = SLOW_DOWN) -> Exception:
    return judged(refusal, "get", "lake", "logs/a.json")


def ask(retries: Retries, request: Callable[[float], str]) -> str:
    return retries.ask("get", "lake", "logs/a.json", request)


def test_a_sound_answer_is_asked_for_once(time: NoTime) -> None:
    server = Server(time, "sound")
    assert ask(retries_on(time), server) == "sound"
    assert (server.left, time.waits) == ([120.0], [])


def test_waits_double_up_to_ten_seconds_and_end_before_the_deadline(time: NoTime) -> None:
    with pytest.raises(TransientStoreError):
        ask(retries_on(time), Server(time, busy()))
    assert time.waits[:8] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0])
    assert set(time.waits[7:]) == {10.0}
    assert 110.0 < sum(time.waits) < 120.0


def test_the_error_shows_what_was_asked_how_often_how_long_and_what_came(time: NoTime) -> None:
    with pytest.raises(TransientStoreError) as caught:
        ask(retries_on(time, 5.0), Server(time, busy()))
    assert type(caught.value) is TransientStoreError, "the state machine matches the name"
    assert str(caught.value) == (
        "get s3://lake/logs/a.json: 6 tries in 3.1 s, "
        "the last answer: 503 SlowDown: Please reduce your request rate."
    )


def test_the_error_is_one_line_whatever_keys_and_servers_are_made_of(time: NoTime) -> None:
    again = Again("<html>\r\n <b>\x1b[31mBad Gateway</b>" + "\n" * 9 + "x" * 9_999)
    with pytest.raises(TransientStoreError) as caught:
        retries_on(time).ask("get", "lake", "a\n\x1bb", Server(time, again))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("seconds", [0.0, 0.4, 7.0, 50.0, 60.0, 119.0, 1_000.0])
def test_the_deadline_holds_however_long_a_try_takes(time: NoTime, seconds: float) -> None:
    server = Server(time, busy(), seconds=seconds)
    began = time.now
    with pytest.raises(TransientStoreError):
        ask(retries_on(time), server)
    assert time.now - began <= 120.0
    assert all(left > 0 for left in server.left)


def test_a_clock_that_stands_still_ends_the_tries_too(time: NoTime) -> None:
    server = Server(time, busy())
    patience = replace(time.patience(), pause=lambda stopped, seconds: False)
    with pytest.raises(TransientStoreError, match=rf"{MOST_TRIES} tries in 0\.0 s"):
        ask(Retries(Limiter(8), patience), server)
    assert len(server.left) == MOST_TRIES


def test_with_a_retry_after_no_try_comes_sooner(time: NoTime) -> None:
    with pytest.raises(TransientStoreError):
        ask(retries_on(time), Server(time, busy(replace(SLOW_DOWN, after_seconds=30.0))))
    assert time.waits == pytest.approx([30.1, 30.2, 30.4])


def test_a_retry_after_that_is_too_late_ends_the_tries_immediately(time: NoTime) -> None:
    server = Server(time, busy(replace(SLOW_DOWN, after_seconds=3_600.0)))
    with pytest.raises(TransientStoreError, match=r"1 try in 0\.0 s"):
        ask(retries_on(time), server)
    assert (len(server.left), time.waits) == (1, [])


@pytest.mark.parametrize("error", [InvalidInput("permission", "", ""), IntegrityError("x")])
def test_an_error_that_another_try_cannot_help_is_reported_immediately(
    time: NoTime, error: Exception
) -> None:
    server = Server(time, error)
    with pytest.raises(type(error)):
        ask(retries_on(time), server)
    assert len(server.left) == 1


def test_nothing_is_waited_for_beyond_the_end_of_the_invocation(time: NoTime) -> None:
    began = time.now
    with pytest.raises(TransientStoreError):
        ask(retries_on(time).within(Left(30.0)), Server(time, busy()))
    assert 15.0 < time.now - began < 30.0 - retries.RESERVE_SECONDS


def test_a_try_knows_how_much_of_the_invocation_is_left(time: NoTime) -> None:
    server = Server(time, "sound")
    ask(retries_on(time).within(Left(30.0)), server)
    assert server.left == [30.0 - retries.RESERVE_SECONDS]


def test_at_the_end_of_an_invocation_each_request_is_still_asked_once(time: NoTime) -> None:
    late = retries_on(time).within(Left(1.0))
    assert late.reads_over
    assert ask(late, Server(time, "sound")) == "sound"
    with pytest.raises(TransientStoreError, match="1 try"):
        ask(late, Server(time, busy()))


def test_an_invocation_without_end_is_never_over(time: NoTime) -> None:
    endless = retries_on(time).within(Left(math.inf))
    assert not endless.reads_over
    assert not retries_on(time).reads_over


def test_a_wait_ends_when_the_answer_is_not_wanted_any_more() -> None:
    asked, stopped = threading.Event(), threading.Event()
    ended: list[Exception] = []

    def request(_: float) -> str:
        asked.set()
        raise busy(replace(SLOW_DOWN, after_seconds=100.0))

    def wait() -> None:
        try:
            Retries(Limiter(8)).ask("get", "lake", "k", request, stopped)
        except TransientStoreError as error:
            ended.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert asked.wait(60)
    stopped.set()
    thread.join(60)
    assert ended, "the wait would have taken 100 seconds"


def test_waits_are_random_so_that_workers_do_not_come_back_together() -> None:
    jitter = Patience().jitter
    waits = [jitter(8.0) for _ in range(200)]
    assert all(0.0 <= wait <= 8.0 for wait in waits)
    assert min(waits) < 2.0
    assert max(waits) > 6.0
    assert len(set(waits)) > 100


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (SLOW_DOWN, True),
        (Refusal(503, "503"), True),
        (Refusal(429, "TooManyRequests"), True),
        (Refusal(400, "KMS.ThrottlingException"), True),
        # With status 200 in truth, in an answer that was begun too early.
        (Refusal(500, "SlowDown"), True),
        (Refusal(500, "InternalError"), False),
        (Refusal(400, "RequestTimeout"), False),
        (Refusal(409, "OperationAborted"), False),
    ],
)
def test_only_being_asked_for_less_counts_as_that(
    time: NoTime, refusal: Refusal, told: bool
) -> None:
    retries = retries_on(time)
    with pytest.raises(TransientStoreError):
        ask(retries, Server(time, busy(refusal)))
    # 18 tries, of 8 at once at most.
    assert retries.limiter.limit == (4 if told else 8)
