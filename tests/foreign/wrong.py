"""Data sets with a declaration that is wrong: what is refused, and what readers see of the rest.

A source that contradicts its declaration is refused. Others look like what was declared: they are
joined as that, and a reader who knows the truth may see headers among rows, or miss rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.foreign.data_sets import DataSet, Form, Row, Source, csv_set, json_set, text_set
from tests.foreign.readers import Records, by_python
from tests.foreign.trial import Output, fate_of
from tests.zoo.chance import Chance

RIGHT, HEADERS, GONE, OTHERS, UNREADABLE = (
    *("right", "headers among rows", "records gone", "other records", "unreadable"),
)
SEEN = (RIGHT, HEADERS, GONE, OTHERS, UNREADABLE)
_JSON_LINES = {"format": "json_lines"}
_TEXT = {"format": "text"}
_Declare = Callable[[Chance, DataSet], Mapping[str, Any]]


@dataclass(frozen=True)
class Wrong:
    """One kind of wrong declaration.

    Attributes:
        make: draws data sets.
        applies: whether the declaration is wrong for a data set.
        declare: returns the wrong declaration.
    """

    make: Callable[[Chance], DataSet]
    applies: Callable[[DataSet], bool]
    declare: _Declare


@dataclass
class WrongTally:
    """What became of the data sets of one kind.

    Attributes:
        sets, sources, records: how many there were.
        refused, alone, joined: sources.
        seen: outputs of several sources, by what a reader who knows the truth sees in them.
        gone: records that such a reader misses.
        faults: what must not be, whatever was declared.
    """

    sets: int = 0
    sources: int = 0
    records: int = 0
    refused: int = 0
    alone: int = 0
    joined: int = 0
    gone: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, other: WrongTally) -> None:
        """Add another tally to this one."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def _form(each: DataSet) -> Form:
    return each.sources[0].form


def _options(**options: Any) -> _Declare:
    return lambda _, each: {**(each.declared or {}), **options}


def _without(name: str) -> _Declare:
    return lambda _, each: {
        option: value for option, value in (each.declared or {}).items() if option != name
    }


def _other_delimiter(chance: Chance, each: DataSet) -> dict[str, Any]:
    others = [delimiter for delimiter in ",;\t|" if delimiter != _form(each).delimiter]
    return {**(each.declared or {}), "format": "csv", "delimiter": chance.choice(others)}


def _is_json(kind: str) -> Callable[[DataSet], bool]:
    return lambda each: each.kind.startswith(f"JSON, {kind}")


def _binary(chance: Chance) -> DataSet:
    bodies = [chance.randbytes(chance.choice((20, 200, 4_000))) for _ in range(3)]
    form = Form("binary")
    sources = tuple(Source(body, (body.hex(),), form) for body in bodies)
    return DataSet("binary", ".bin", None, sources)


def _csv(header: bool) -> Callable[[DataSet], bool]:
    return lambda each: _form(each).header == header


def _fixed(declared: Mapping[str, Any]) -> _Declare:
    return lambda _, __: declared


_ROWS = {"format": "csv", "header": False}
WRONGS: Mapping[str, Wrong] = {
    "header: true, and there is none": Wrong(csv_set, _csv(False), _options(header=True)),
    "header: false, and there is one": Wrong(csv_set, _csv(True), _options(header=False)),
    "another delimiter": Wrong(csv_set, lambda _: True, _other_delimiter),
    "quote: none, and there are quotes": Wrong(
        csv_set,
        lambda each: _form(each).quotes and any(b'"' in source.body for source in each.sources),
        _options(quote="none"),
    ),
    "quotes, and there are none": Wrong(
        csv_set, lambda each: not _form(each).quotes, _without("quote")
    ),
    "no escape, and there are backslashes": Wrong(
        csv_set,
        lambda each: _form(each).backslash and any(b"\\" in one.body for one in each.sources),
        _without("escape"),
    ),
    "escape: backslash, and there are none": Wrong(
        csv_set, lambda each: not _form(each).backslash, _options(escape="backslash")
    ),
    "text for CSV with a header": Wrong(csv_set, _csv(True), _fixed(_TEXT)),
    "text for CSV without a header": Wrong(csv_set, _csv(False), _fixed(_TEXT)),
    "JSON lines for CSV": Wrong(csv_set, lambda _: True, _fixed(_JSON_LINES)),
    "JSON lines for text": Wrong(text_set, lambda _: True, _fixed(_JSON_LINES)),
    "CSV for text": Wrong(text_set, lambda _: True, _fixed(_ROWS)),
    "CSV with a header for text": Wrong(
        text_set, lambda _: True, _fixed({**_ROWS, "header": True})
    ),
    "CSV for JSON lines": Wrong(json_set, _is_json("lines"), _fixed(_ROWS)),
    "text for JSON lines": Wrong(json_set, _is_json("lines"), _fixed(_TEXT)),
    "text for undelimited JSON": Wrong(json_set, _is_json("undelimited"), _fixed(_TEXT)),
    "text for JSON arrays": Wrong(json_set, _is_json("array"), _fixed(_TEXT)),
    "text for CloudTrail": Wrong(json_set, _is_json("trail"), _fixed(_TEXT)),
    "arrays for JSON lines": Wrong(
        json_set, _is_json("lines"), _fixed({"format": "json_array_lines"})
    ),
    "JSON lines for JSON arrays": Wrong(json_set, _is_json("array"), _fixed(_JSON_LINES)),
    "CloudTrail for JSON arrays": Wrong(
        json_set, _is_json("array"), _fixed({"format": "cloudtrail_lines"})
    ),
    "text in UTF-8, and it is Latin-1": Wrong(
        text_set, lambda each: _form(each).encoding != "utf-8", _fixed(_TEXT)
    ),
    "text for binary": Wrong(_binary, lambda _: True, _fixed(_TEXT)),
    "text of single bytes for binary": Wrong(
        _binary, lambda _: True, _fixed({**_TEXT, "encoding": "single_byte"})
    ),
}


def wrong_set(name: str, seed: int, number: int) -> DataSet:
    """A data set with a wrong declaration; equal for equal arguments, in every process."""
    chosen = WRONGS[name]
    chance = Chance(f"wrong, {name}", seed, number, 0)
    while True:
        each = chosen.make(chance)
        # What contradicts its true declaration says nothing about this one.
        sources = tuple(source for source in each.sources if not source.refused and source.records)
        each = replace(each, sources=sources, ending=each.ending or ".dat")
        if len(sources) > 1 and chosen.applies(each):
            return replace(each, declared=chosen.declare(chance, each))


def judged_wrong(each: DataSet, kind: str) -> WrongTally:
    """Run the product over a data set; what became of it, and what a reader sees."""
    fate = fate_of(each)
    tally = WrongTally(
        sets=1,
        sources=len(each.sources),
        records=sum(len(source.records) for source in each.sources),
        refused=len(fate.refused),
        faults=[f"{kind}: {fault}" for fault in fate.faults],
    )
    for output in fate.outputs:
        if len(output.sources) < 2:
            tally.alone += 1
            continue
        tally.joined += len(output.sources)
        seen, gone = _seen(output)
        tally.seen[seen] += 1
        tally.gone += gone
    return tally


def _seen(output: Output) -> tuple[str, int]:
    """What a reader who knows the truth sees in an output, and how many records are gone."""
    truth = _lines_of(output.truth)
    try:
        header, records = _read(output.body, _form(output.data_set))
    except Exception:
        return UNREADABLE, len(truth)
    headers = {source.header for source in output.sources}
    gone, new = Counter(truth) - Counter(records), Counter(records) - Counter(truth)
    if gone:
        return OTHERS if new else GONE, gone.total()
    if new:
        return HEADERS if new.keys() <= headers else OTHERS, 0
    return RIGHT if headers == {header} else OTHERS, 0


def _read(body: bytes, form: Form) -> tuple[Row | None, Records]:
    if form.format == "binary":
        raise ValueError("two of them in one object are neither")
    if form.format == "json":
        # Values behind each other, on lines or not.
        return None, [*_values(body.decode())]
    header, records = by_python(body, form)
    return header, _lines_of(records)


def _lines_of(records: Records) -> Records:
    """Records without the CR of their line end, which is none of theirs."""
    return [record.removesuffix("\r") if isinstance(record, str) else record for record in records]


def _values(text: str) -> Iterator[str]:
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        yield json.dumps(value, sort_keys=True)


def wrong(sets: int, seed: int, part: tuple[int, int]) -> dict[str, WrongTally]:
    """So many data sets, of each kind of wrong declaration in turn."""
    total = {name: WrongTally() for name in WRONGS}
    names = list(WRONGS)
    first, step = part
    for number in range(first, sets * step, step):
        turn, which = divmod(number // step, len(names))
        each = wrong_set(names[which], seed, turn * step + first)
        total[names[which]].add(judged_wrong(each, names[which]))
    return total


def wrong_table(tallies: Mapping[str, WrongTally]) -> str:
    """A row a kind: shares of sources, and of joined outputs by what is seen in them."""
    heads = ("sets", "sources", "refused", "alone", "joined", "outputs", *SEEN, "lost records")
    lines = ["| declared wrongly | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for kind, tally in tallies.items():
        outputs = tally.seen.total()
        shares = [
            _share(count, tally.sources) for count in (tally.refused, tally.alone, tally.joined)
        ]
        seen = [_share(tally.seen[what], outputs) for what in SEEN]
        lost = _share(tally.gone, tally.records)
        cells = [
            kind,
            f"{tally.sets:,}",
            f"{tally.sources:,}",
            *shares,
            f"{outputs:,}",
            *seen,
            lost,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
