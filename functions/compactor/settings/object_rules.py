"""Selects the rules for the objects of a partition."""

from __future__ import annotations

import re
from collections.abc import Callable

from compactor.settings.policies import USUAL, Matched, Policies, compiled
from compactor.settings.settings import Settings

_NONE, _SOME, _ALL = 0, 1, 2


class ObjectRules:
    """The rules for the objects of a partition; usually one for all of them.

    Args:
        policies: all rules.
        bucket: of the partition.
        prefix: of the partition.

    Attributes:
        one: the rule for all its objects; None if several rules apply.
    """

    def __init__(self, policies: Policies, bucket: str, prefix: str) -> None:
        self._root = f"s3://{bucket}/"
        uri = self._root + prefix
        self._rules: list[tuple[re.Pattern[str], Matched]] = []
        self.one: Matched | None = None
        for position, rule in enumerate(policies.rules, start=1):
            for pattern in rule.match:
                share = _share(pattern, uri)
                matched = Matched(rule, position, pattern)
                if share:
                    self._rules.append((compiled(pattern), matched))
                if share == _ALL:
                    self._end(matched)
                    return
        self._end(Matched(USUAL))

    def _end(self, last: Matched) -> None:
        """Make this the rule for all objects that no earlier rule matches."""
        self._last = last
        if all(matched == last for _, matched in self._rules):
            self.one = last

    def of(self, key: str) -> Matched:
        """Return the rule for an object of the partition."""
        if self.one is not None:
            return self.one
        uri = self._root + key
        return next((one for pattern, one in self._rules if pattern.fullmatch(uri)), self._last)


def _share(pattern: str, uri: str) -> int:
    """Return how many of the objects below a prefix a pattern may match: none, some or all."""
    if "://" not in pattern and pattern != "*":
        # A table's name, for any catalog.
        return _NONE
    head, star, rest = pattern.partition("*")
    if star and not rest and uri.startswith(head):
        return _ALL
    if head.startswith(uri) or (star and uri.startswith(head)):
        return _SOME
    return _NONE


def csv_header_of(settings: Settings) -> Callable[[str], str]:
    """Return a function from a source's key to what is declared of its first record."""
    if not settings.csv_rules:
        return lambda _: settings.csv_header
    rules, bucket = settings.rules, settings.source.root.bucket

    def declared(key: str) -> str:
        found = rules.of(f"s3://{bucket}/{key}").rule.csv_header
        return settings.csv_header if found == "auto" else found

    return declared
