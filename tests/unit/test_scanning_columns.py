"""A proposal for CSV that is not called unsure is right, whatever the columns hold."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from compactor.scanning.columns import Confidence
from compactor.scanning.proposals import Head, propose_formats

WORDS = ("alpha", "beta", "berlin", "rome", "ann", "bob", "ok", "failed", "red", "green")
NAMES = ("id", "name", "city", "amount", "at", "user", "status", "note", "ref", "2019", "Q1", "lat")
COLUMNS: tuple[Callable[[Random], str], ...] = (
    lambda r: str(r.randint(0, 10 ** r.randint(1, 9))),
    lambda r: f"{r.uniform(-9, 999):.2f}",
    lambda r: r.choice(WORDS),
    lambda r: " ".join(r.choices(WORDS, k=r.randint(1, 6))),
    lambda r: f"2026-{r.randint(1, 12):02}-{r.randint(1, 28):02}",
    lambda r: r.choice(("true", "false")),
    lambda r: r.choice(("", "7", "12")),
    lambda r: r.choice("ABCDE") + str(r.randint(10, 99)),
    lambda r: f"{r.choice(WORDS)}, {r.choice(WORDS)}",
    lambda r: f'{r.choice(WORDS)} "{r.choice(WORDS)}"',
    lambda r: r.choice(("NULL", "n/a", str(r.randint(0, 99)))),
)


def written(random: Random, header: list[str] | None, columns: list[int], delimiter: str) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    if header is not None:
        rows.writerow(header)
    for _ in range(random.choice((1, 2, 5, 50))):
        rows.writerow([COLUMNS[at](random) for at in columns])
    return text.getvalue().encode()


@pytest.mark.parametrize("seed", range(10))
def test_what_is_certain_or_likely_is_so(seed: int) -> None:
    random, grades = Random(seed), Counter[str]()
    for _ in range(40):
        columns = [random.randrange(len(COLUMNS)) for _ in range(random.randint(1, 7))]
        header = random.sample(NAMES, len(columns)) if random.random() < 0.5 else None
        delimiter, suffix = random.choice(",,,;\t|"), random.choice((".csv", ".csv", ".tsv"))
        many = random.choice((1, 3, 12, 40))
        bodies = [written(random, header, columns, delimiter) for _ in range(many)]
        heads = [Head(f"x/{n}{suffix}", body, complete=True) for n, body in enumerate(bodies)]
        (proposal,) = propose_formats(heads, ())
        grades[proposal.confidence] += 1
        for declaration in proposal.declared:
            assert declaration.header == (header is not None), (proposal, bodies[0])
            assert declaration.delimiter == delimiter or len(columns) == 1, (proposal, bodies[0])
    assert grades[Confidence.UNSURE] < 28


def test_where_two_delimiters_fit_a_person_decides() -> None:
    heads = [Head(f"{n}.csv", b"1,5;2,%d\n3,5;4,%d\n" % (n, n), complete=True) for n in range(20)]
    (proposal,) = propose_formats(heads, ())
    assert proposal.confidence is Confidence.UNSURE
    assert "other delimiters fit as well" in proposal.evidence
