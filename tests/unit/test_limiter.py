"""How many reads run at once, as the answers come in."""

from __future__ import annotations

import threading

from compactor.stores.limiter import LEAST, START, Limiter


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


def test_when_all_are_refused_the_limit_is_halved_at_once_but_never_below_the_least():
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


def test_no_more_than_the_limit_run_at_once():
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
