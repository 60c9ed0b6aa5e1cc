"""The violations that are there now, so that only new ones fail: allowed.json."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from compactor_dev.docs.pages import Finding

FILE = Path(__file__).with_name("allowed.json")
_COUNTED = frozenset({"line", "word"})
Allowed = Mapping[str, Mapping[str, int]]


def read(file: Path = FILE) -> Allowed:
    """By file and violation, how often it may be there."""
    found: Allowed = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def write(findings: Iterable[Finding], file: Path = FILE) -> int:
    """Allow what is there now, and nothing else; returns how many violations that are."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in findings:
        counts[one.path][_name(one)] += 1
    lines = (
        f"{json.dumps(path)}: {json.dumps(dict(sorted(found.items())), ensure_ascii=False)}"
        for path, found in sorted(counts.items())
    )
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return sum(found.total() for found in counts.values())


def not_allowed(findings: Iterable[Finding], allowed: Allowed) -> Iterator[Finding]:
    """Violations of which there are more than allowed: all of that kind in the file."""
    kinds: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for one in findings:
        kinds[one.path, _name(one)].append(one)
    for (path, name), found in kinds.items():
        if len(found) > allowed.get(path, {}).get(name, 0):
            yield from found


def _name(one: Finding) -> str:
    """What is counted together: of long lines and of words, all of a file."""
    return one.rule if one.rule in _COUNTED else f"{one.rule}: {one.subject}"
