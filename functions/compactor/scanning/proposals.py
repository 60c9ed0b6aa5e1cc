"""Proposes a format for each family of keys, from the first bytes of a few objects."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice, zip_longest
from typing import Any

from compactor.encoding.codecs import beginning
from compactor.errors import SourceChanged, UnreadableSource
from compactor.formats import detect
from compactor.formats.characters import is_utf8
from compactor.formats.declaration import Declaration, parse_formats
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.scanning.columns import Confidence, header_of, read_tables
from compactor.scanning.listing import Listed, directory_shape, split_key

#: Maximum number of objects that are read, and of bytes of each, in one GET.
MOST_SAMPLED, RANGE_BYTES = 64, 256 << 10
# What objects are that no declaration helps, by their first bytes.
_MAGICS = {
    b"\xff\xd8\xff": "images (JPEG)",
    b"\x89PNG": "images (PNG)",
    b"GIF8": "images (GIF)",
    b"PK\x03\x04": "zip archives",
    b"ORC": "ORC files",
    b"Obj\x01": "Avro files",
    b"%PDF": "PDF documents",
    b"---": "YAML or PEM documents",
    b"<": "XML or HTML documents",
    b"{": "JSON documents over several lines",
    b"[": "JSON documents over several lines",
}
# Formats that a name, dates or a header show.
_SHOWN = {"empty", "text", "parquet", "vpc_flow", "cloudfront"}


@dataclass(frozen=True, slots=True)
class Head:
    """The first bytes of an object.

    Attributes:
        relative: its key below the source root.
        plain: decompressed bytes.
        complete: whether they are all.
        fault: why they could not be read.
    """

    relative: str
    plain: bytes = b""
    complete: bool = False
    fault: str = ""

    def format(self, declaration: Declaration | None = None) -> str:
        """Return the format as which a run takes the object; empty if it leaves it alone."""
        key, complete = self.relative, self.complete
        try:
            detected = detect(self.plain, key, complete=complete, declaration=declaration)
        except UnreadableSource:
            return ""
        return "" if self.fault else "empty" if detected is None else detected.format.value

    @property
    def kind(self) -> str:
        """What it is if it cannot be compacted; empty for lines of text."""
        plain = self.plain.lstrip()
        kinds = (kind for magic, kind in _MAGICS.items() if plain.startswith(magic))
        return self.fault or next(kinds, "binary data" if b"\0" in plain else "")


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """What to declare for one family of keys.

    Attributes:
        match: a glob for its keys below the source root.
        kind: the format, or what its objects are if they cannot be compacted.
        options: declarations without ``match``: none if none is needed or possible, else the
            proposed one, and others that a person may choose.
        share: of its objects that a run takes.
        example: a key of the family.
    """

    match: str
    kind: str
    example: str
    evidence: str
    share: float = 1.0
    options: tuple[Mapping[str, Any], ...] = ()
    confidence: Confidence = Confidence.CERTAIN

    @property
    def declared(self) -> tuple[Declaration, ...]:
        """The declaration to write; none if it is left to a person."""
        proposed = self.options[:1] if self.confidence is not Confidence.UNSURE else ()
        return parse_formats([{"match": self.match, **options} for options in proposed])

    def matches(self, relative: str) -> bool:
        """Return whether a key below the source root matches."""
        return fnmatchcase(relative, self.match)


def sample(listed: Listed, directories: Iterable[str]) -> list[SourceObject]:
    """Return at most 64 objects of these directories, as many of each shape of keys."""
    within, mixed = frozenset(directories), random.Random(17)  # noqa: S311 - always the same
    shapes = [
        [one for one in mixed.sample(sources, len(sources)) if split_key(one.key)[0] in within]
        for sources in listed.shapes.values()
    ]
    turns = zip_longest(*sorted(shapes, key=len, reverse=True))
    return list(islice((source for turn in turns for source in turn if source), MOST_SAMPLED))


def read_heads(
    sources: Sequence[SourceObject], root: str, store: ObjectStore, on_head: Callable[[], None]
) -> list[Head]:
    """Read the first bytes of objects below a source root, with one GET each.

    Raises:
        TransientStoreError: the store did not answer.
    """

    def head(source: SourceObject) -> Head:
        relative = source.key[len(root) :]
        try:
            stored = store.read_range(source, 0, min(source.size, RANGE_BYTES))
            return Head(relative, *beginning(stored, complete=len(stored) == source.size))
        except SourceChanged:
            return Head(relative, fault="changed")
        except UnreadableSource as error:
            return Head(relative, fault=error.reason)
        finally:
            on_head()

    with ThreadPoolExecutor(8, thread_name_prefix="sample") as pool:
        return list(pool.map(head, sources))


def propose_formats(heads: Iterable[Head], given: Sequence[Declaration]) -> list[Proposal]:
    """Return a proposal for each extension, or for each of its directories where they differ.

    Args:
        heads: a sample of all keys.
        given: declarations of a person, which come first.
    """
    names = defaultdict[str, dict[str, list[Head]]](lambda: defaultdict(list))
    declared = defaultdict[Declaration, list[Head]](list)
    for head in heads:
        directory, name = split_key(head.relative)
        declaration = next((one for one in given if one.matches(head.relative)), None)
        family = declared[declaration] if declaration else names[name][directory_shape(directory)]
        family.append(head)
    proposals: list[Proposal] = []
    for name, shapes in names.items():
        whole = _propose(name, [head for own in shapes.values() for head in own])
        if whole.share == 1 or len(shapes) == 1:
            proposals.append(whole)
        else:
            proposals += (_propose(shape + name, own) for shape, own in shapes.items())
    # Of two patterns that match a key the longer comes first, and counts.
    proposals.sort(key=lambda proposal: (-len(proposal.match), proposal.match))
    proposals = [_unless_it_declares_others(proposal, proposals) for proposal in proposals]
    return [_as_given(one, declared[one]) for one in given if one in declared] + proposals


def _as_given(declaration: Declaration, heads: Sequence[Head]) -> Proposal:
    fitting, many = sum(head.format(declaration) != "" for head in heads), len(heads)
    evidence = f"declared by you: {fitting} of {many} begin so"
    example = heads[0].relative
    return Proposal(declaration.match, declaration.name, example, evidence, fitting / many)


def _unless_it_declares_others(proposal: Proposal, proposals: Sequence[Proposal]) -> Proposal:
    undeclared = (other for other in proposals if other is not proposal and not other.declared)
    shadowed = [other.match for other in undeclared if proposal.matches(other.example)]
    if not shadowed or not proposal.declared:
        return proposal
    evidence = f"{proposal.evidence}; it also matches keys of {shadowed[0]}"
    return replace(proposal, confidence=Confidence.UNSURE, evidence=evidence, share=0.0)


def _propose(match: str, heads: Sequence[Head]) -> Proposal:
    """Return what to declare about the objects of a family, if anything."""
    many, example = len(heads), heads[0].relative
    formats = Counter(filter(None, (head.format() for head in heads)))
    fitting, share = formats.total(), formats.total() / many
    kinds = Counter(head.kind for head in heads if not head.format())
    kind, of_kind = kinds.most_common(1)[0] if kinds else ("", 0)
    is_table = ".csv" in match or ".tsv" in match
    if fitting == many or (2 * fitting >= many and kind):
        how = "by name or first line" if formats.keys() <= _SHOWN else "proven by parsing"
        evidence = f"no declaration needed: {fitting} of {many} {how}"
        evidence += f"; {of_kind} cannot be compacted: {kind}" if kind else ""
        return Proposal(match, ", ".join(sorted(formats)), example, evidence, share)
    if all(head.plain.startswith(b"PAR1") for head in heads):
        evidence = f"{many} of {many} begin as Parquet does"
        options = ({"format": "parquet"},)
        return _if_it_helps(Proposal(match, "", example, evidence, options=options), heads)
    if kind and not is_table:
        evidence = f"cannot be compacted: {of_kind} of {many} are {kind}"
        return Proposal(match, kind, example, evidence, share)
    return _if_it_helps(_of_lines(match, heads, is_table=is_table), heads)


def _of_lines(match: str, heads: Sequence[Head], *, is_table: bool) -> Proposal:
    """Propose CSV, TSV or text for objects that may be either."""
    example, decoded = heads[0].relative, [_decoded(head) for head in heads]
    encoding = {} if decoded == heads else {"encoding": "single_byte"}
    format, delimiter = ("tsv", "\t") if ".tsv" in match else ("csv", ",")
    options, tables, alone = read_tables([(head.plain, head.complete) for head in heads], delimiter)
    wide = [table for table in tables if len(table[0]) > 1 < len(table)]
    dated = sum(head.format() != "" for head in decoded)
    if 2 * len(tables) > len(heads) and (is_table or (len(wide) == len(heads) and not dated)):
        present, confidence, evidence = header_of(tables)
        declarations = tuple(
            {"format": format, "header": header, **options, **encoding}
            for header in (present, not present)
        )
        if not alone:
            evidence, confidence = f"{evidence}; other delimiters fit as well", Confidence.UNSURE
        evidence = f"header: {evidence}"
        return Proposal(match, "", example, evidence, 1.0, declarations, confidence)
    evidence = f"text: {dated} of {len(heads)} begin with a time"
    confidence = Confidence.LIKELY if 2 * dated >= len(heads) else Confidence.UNSURE
    text = {"format": "text", **encoding}
    return Proposal(match, "", example, evidence, 1.0, (text,), confidence)


def _decoded(head: Head) -> Head:
    """Return a head in UTF-8 that is in another encoding."""
    if is_utf8(head.plain, complete=head.complete):
        return head
    return replace(head, plain=head.plain.decode("latin-1").encode())


def _if_it_helps(proposal: Proposal, heads: Sequence[Head]) -> Proposal:
    """Return the proposal if the very bytes can be read as it declares."""
    declaration, *_ = parse_formats(proposal.options)
    share = sum(head.format(declaration) != "" for head in heads) / len(heads)
    if not share:
        evidence = f"cannot be compacted: none can be read as {declaration.text}"
        return replace(proposal, kind="unknown", evidence=evidence, options=(), share=0.0)
    return replace(proposal, kind=declaration.name, share=share if proposal.declared else 0.0)
