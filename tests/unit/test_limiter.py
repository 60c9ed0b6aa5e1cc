"""How many reads run concurrently, as the answers come in."""

from __future__ import annotations

import threading
import time

from compactor.errors import TransientStoreError
from compactor.s3.limiter import LEAST, START, Limiter


class Stopwatch:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def take(limiter: Limiter, watch: Stopwatch, seconds: float, times: int) -> None:
    for _ in range(times):
        with limiter.permit():
            watch.time += seconds


def test_the_limit_doubles_while_answers_stay_quick_and_never_exceeds_the_most():
    watch = Stopwatch()
    limiter = Limiter(300, clock=watch)
    assert limiter.limit == START
    take(limiter, watch, 0.025, START)
    assert limiter.limit == 2 * START
    take(limiter, watch, 0.025, 1_000)
    assert limiter.limit == 300


def test_the_limit_holds_when_more_reads_only_wait_longer():
    watch = Stopwatch()
    limiter = Limiter(1_000, clock=watch)
    take(limiter, watch, 0.025, START)
    before = limiter.limit
    take(limiter, watch, 0.100, 10 * before)
    assert limiter.limit == before


def test_a_round_with_many_refusals_halves_the_limit():
    watch = Stopwatch()
    limiter = Limiter(256, clock=watch)
    for _ in range(START // 10):
        limiter.slow_down()
    take(limiter, watch, 0.025, START)
    assert limiter.limit == START // 2


def test_a_lone_refusal_is_weather():
    watch = Stopwatch()
    limiter = Limiter(512, clock=watch)
    limiter.slow_down()
    take(limiter, watch, 0.025, START)
    assert limiter.limit == 2 * START


def test_when_all_are_refused_the_limit_is_halved_immediately_but_never_below_the_least():
    watch = Stopwatch()
    limiter = Limiter(256, clock=watch)
    for _ in range(START):
        limiter.slow_down()
    assert limiter.limit == START // 2
    for _ in range(1_000):
        limiter.slow_down()
    assert limiter.limit == LEAST
    take(limiter, watch, 0.025, LEAST)
    assert limiter.limit == LEAST + 1, "grows again, slowly"


def test_a_failed_read_teaches_nothing_but_gives_its_permit_back():
    limiter = Limiter(1)
    try:
        with limiter.permit():
            raise OSError("reset")
    except OSError:
        limiter.slow_down()
    with limiter.permit():
        assert limiter.limit >= 1


def test_no_more_than_the_limit_run_concurrently():
    limiter = Limiter(3)
    at_once = most = 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal at_once, most
        for _ in range(50):
            with limiter.permit():
                with lock:
                    at_once += 1
                    most = max(most, at_once)
                with lock:
                    at_once -= 1

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= most <= 3


class Busy:
    """A server that takes so many at once, and refuses the others."""

    def __init__(self, takes: int) -> None:
        self.takes = takes

    def rounds(self, limiter: Limiter, watch: Stopwatch, count: int) -> list[int]:
        """The limit after each round in which as many read at once as may."""
        limits = []
        for _ in range(count):
            at_once = limiter.limit
            for number in range(at_once):
                with limiter.permit():
                    if number >= self.takes:
                        limiter.slow_down()
                    watch.time += 0.025
            limits.append(limiter.limit)
        return limits


def test_the_limit_goes_down_while_s3_asks_for_less_and_up_again_afterwards():
    watch = Stopwatch()
    limiter = Limiter(256, clock=watch)
    server = Busy(takes=1_000)
    assert server.rounds(limiter, watch, 3) == [256, 256, 256]
    server.takes = 40
    assert server.rounds(limiter, watch, 5) == [128, 64, 32, 36, 40]
    # Around what the server takes, up and down.
    swinging = server.rounds(limiter, watch, 60)
    assert 20 <= min(swinging) <= 40 <= max(swinging) <= 50
    server.takes = 0
    assert server.rounds(limiter, watch, 12)[-1] == LEAST
    server.takes = 1_000
    recovery = server.rounds(limiter, watch, 45)
    assert recovery[:8] == [4, 5, 6, 7, 8, 9, 10, 11]
    assert recovery == sorted(recovery)
    assert recovery.index(256) == 37


def may_read(limiter: Limiter, until: float = 0.0) -> bool:
    try:
        with limiter.permit(until=until):
            return True
    except TransientStoreError:
        return False


def test_requests_of_other_kinds_do_not_wait_and_reads_leave_room_for_them():
    limiter = Limiter(3, clock=Stopwatch())
    with limiter.beside(), limiter.permit():
        assert may_read(limiter)
    with limiter.beside(), limiter.permit(), limiter.permit():
        assert not may_read(limiter)
    with limiter.permit(), limiter.permit():
        assert may_read(limiter)


def test_one_read_goes_on_however_many_other_requests_there_are():
    limiter = Limiter(3, clock=Stopwatch())
    with limiter.beside(), limiter.beside(), limiter.beside(), limiter.beside():
        assert may_read(limiter)
        with limiter.permit():
            assert not may_read(limiter)


def test_what_s3_says_to_other_requests_counts_among_all_that_were_made():
    watch = Stopwatch()
    limiter = Limiter(256, clock=watch)
    for number in range(10_000):
        with limiter.beside():
            if number % 50 == 0:
                limiter.slow_down()
    assert limiter.limit == START, "two in a hundred are weather, however many came together"
    for _ in range(START):
        with limiter.beside():
            limiter.slow_down()
            limiter.slow_down()
            limiter.slow_down()
    assert limiter.limit < START


def test_a_read_that_waits_for_its_turn_gives_up_at_the_end_of_its_time():
    limiter = Limiter(1)
    with limiter.permit():
        assert not may_read(limiter, until=time.monotonic() + 0.01)
    assert may_read(limiter)
