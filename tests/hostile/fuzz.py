"""Fuzz the parsers for as long as one likes.

    python -m tests.hostile.fuzz [SECONDS] [PARSER ...]

Each parser gets an equal share of the seconds (60 in all, by default; with 0 it gets a thousand
inputs, however long they take), in a process of its own, because a fuzzer ends its process. With
atheris installed the coverage of our code guides it; without, bytes of sound documents are changed
at random. What fails is shown with its traceback and its input, and makes the exit code 1. The last
line counts.
"""

from __future__ import annotations

import importlib.util
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_EXECUTIONS = re.compile(r"Done (\d+) (?:runs|inputs) in")
_ONE = "--one"
_LONGEST_INPUT = 4_096
_FEW = 1_000


def main(arguments: list[str]) -> int:
    """Fuzz, or be the process that fuzzes one parser."""
    if arguments[:1] == [_ONE]:
        return _fuzz_one(arguments[1], int(arguments[2]))
    from tests.hostile.parsers import PARSERS

    seconds = int(arguments[0]) if arguments else 60
    names = arguments[1:] or [*PARSERS]
    share = max(1, seconds // len(names)) if seconds else 0
    total = failures = 0
    for name in names:
        executions, failed = _in_a_process(name, share)
        total += executions
        failures += failed
    guided = "guided by coverage" if _atheris_is_here() else "not guided: atheris is not installed"
    print(f"fuzz: {len(names)} parsers, {total:,} inputs ({guided}), {failures} failures")  # noqa: T201 - a program
    return 1 if failures else 0


def _in_a_process(name: str, seconds: int) -> tuple[int, bool]:
    command = [sys.executable, "-m", "tests.hostile.fuzz", _ONE, name, str(seconds)]
    with tempfile.TemporaryDirectory() as directory:
        _write_seeds(name, Path(directory))
        done = subprocess.run(
            [*command, directory], capture_output=True, text=True, errors="replace", check=False
        )
    found = _EXECUTIONS.search(done.stdout + done.stderr)
    if done.returncode or found is None:
        print(f"{name} failed:\n{done.stdout}\n{done.stderr}", file=sys.stderr)  # noqa: T201 - a program
    return int(found[1]) if found else 0, bool(done.returncode) or found is None


def _write_seeds(name: str, directory: Path) -> None:
    from tests.hostile.seeds import SEEDS

    for number, seed in enumerate(SEEDS[name]):
        (directory / f"{number:04}").write_bytes(seed)


def _fuzz_one(name: str, seconds: int) -> int:
    corpus = Path(sys.argv[-1])
    if not _atheris_is_here():
        return _change_at_random(name, seconds, corpus)
    import atheris

    with atheris.instrument_imports(include=["compactor"]):
        from tests.hostile.parsers import PARSERS
    limit = f"-max_total_time={seconds}" if seconds else f"-runs={_FEW}"
    options = [limit, f"-max_len={_LONGEST_INPUT}", "-timeout=60"]
    artifacts = f"-artifact_prefix={corpus}/crash-"
    atheris.Setup([sys.argv[0], *options, artifacts, str(corpus)], PARSERS[name])
    atheris.Fuzz()
    return 0


def _change_at_random(name: str, seconds: int, corpus: Path) -> int:
    from tests.hostile.parsers import PARSERS
    from tests.hostile.seeds import TOKENS

    seeds = [path.read_bytes() for path in sorted(corpus.iterdir())]
    chance, end, count = random.Random(name), time.monotonic() + seconds, 0
    while time.monotonic() < end if seconds else count < _FEW:
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            at, width = chance.randint(0, len(data)), chance.choice((0, 0, 1, 1, 9))
            data[at : at + width] = chance.choice((*TOKENS, chance.randbytes(1), b""))
        try:
            PARSERS[name](bytes(data))
        except BaseException:
            print(f"input: {bytes(data)!r}")  # noqa: T201 - a program
            raise
        count += 1
    print(f"Done {count} inputs in {seconds} seconds")  # noqa: T201 - a program
    return 0


def _atheris_is_here() -> bool:
    return importlib.util.find_spec("atheris") is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
