"""Where a partition's outputs go, what they are called, and what they say of themselves."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from compactor.model import ObjectGroup

# The hex id of the group, and an extension.
_NAME_REST = re.compile(r"[0-9a-f]{32}(?:\.[^/]*)?", re.DOTALL)
_LIKE_OUTPUT = re.compile(r"(?:.*/)?([^/]*)-([0-9a-f]{32})(?:\.[^/]*)?", re.DOTALL)
_STEM = "compacted"
#: Names of the metadata that outputs carry.
LOG_METADATA, GROUP_METADATA = "compactor-log", "compactor-group"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where outputs of a partition go: bucket, and prefix ending in ``/``.

    Attributes:
        log_id: identity of the log that will name the outputs, or what waits until it is known;
            empty where no caller asks.
        stem: what the names of its outputs begin with; another one where they were renamed.
    """

    bucket: str
    prefix: str
    log_id: str | Callable[[], str] = ""
    stem: str = _STEM

    def key(self, group: ObjectGroup, extension: str) -> str:
        """Key of a group's output; the same sources always give the same key."""
        return f"{self.stem_prefix}{group.id}{extension}"

    @property
    def stem_prefix(self) -> str:
        """What the keys of all outputs begin with; keys of others may, too."""
        return f"{self.prefix}{self.stem}-"

    def is_output(self, key: str) -> bool:
        """True for keys as :meth:`key` makes them; what lies deeper belongs to other partitions."""
        named = key.startswith(self.stem_prefix)
        return named and _NAME_REST.fullmatch(key, len(self.stem_prefix)) is not None

    def metadata(self, group: ObjectGroup) -> dict[str, str]:
        """What an output says of itself: whose it is, and of which group.

        Raises:
            IntegrityError: the log is not what it was.
            InvalidInput: the state is that of another destination.
        """
        log_id = self.log_id if isinstance(self.log_id, str) else self.log_id()
        return {LOG_METADATA: log_id, GROUP_METADATA: group.id} if log_id else {}


class OutputName(NamedTuple):
    """Stem and group id in the name of an output."""

    stem: str
    group_id: str

    @property
    def is_usual(self) -> bool:
        """Whether the stem is the one that runs give."""
        return self.stem == _STEM


def output_name(key: str) -> OutputName | None:
    """What a key says that is named as outputs are, of whatever stem; None for any other."""
    found = _LIKE_OUTPUT.fullmatch(key)
    return None if found is None else OutputName(*found.groups())
