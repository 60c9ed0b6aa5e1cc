"""Looks that take less time than the careful ones, and must never see anything else."""

from __future__ import annotations

import random

import pytest

from compactor.formats import log_lines

STAMPED = b"2026-01-31 11:55:%02d.000 INFO [http-%d] shop.web.Filter - request took %d ms"
ODD = (b"", b"\r", b"no line of a log", b"\tat shop.web.Filter.run(Filter.java:7)", b"x" * 700)
ENDS = (b"", b"\n", b"\r\n", b"\n\n", b"\r")


@pytest.mark.parametrize("seed", range(40))
def test_lines_seen_in_place_are_alike_only_where_a_copy_of_them_is(seed: int) -> None:
    chance = random.Random(seed)
    agreed = 0
    for _ in range(50):
        lines = [
            STAMPED % (n % 60, n, n * n) + (b"\r" if chance.random() < 0.02 else b"")
            for n in range(chance.randrange(1, 60))
        ]
        for _ in range(chance.choice((0, 0, 1))):
            lines.insert(chance.randrange(1, len(lines) + 1), chance.choice(ODD))
        head = b"\n".join(lines) + chance.choice(ENDS)
        form = log_lines.form_of(head)
        assert form is not None
        if log_lines._have_one_form(head, form):
            sample = log_lines._sample(head, b"", complete=True)
            assert log_lines._all(form).match(sample), head
            agreed += 1
    assert agreed
