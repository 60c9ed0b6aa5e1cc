"""The location, names and metadata of a partition's outputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from compactor.model import ObjectGroup

# The hex id of a group, and an extension.
_NAME_REST = re.compile(r"[0-9a-f]{32}(?:\.[^/]*)?", re.DOTALL)
_STEM = "compacted-"
_OUTPUT = re.compile(rf"(?:.*/)?{_STEM}{_NAME_REST.pattern}", re.DOTALL)
#: Names of the user metadata of outputs.
LOG_METADATA, GROUP_METADATA = "compactor-log", "compactor-group"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a partition's outputs are written: bucket, and prefix ending in ``/``.

    Attributes:
        log_id: identity of the log that names the outputs, or a function that waits for it; empty
            if no metadata is needed.
    """

    bucket: str
    prefix: str
    log_id: str | Callable[[], str] = ""

    def key(self, group: ObjectGroup, extension: str) -> str:
        """Return the key of a group's output. The same sources always have the same key."""
        return f"{self.stem_prefix}{group.id}{extension}"

    @property
    def stem_prefix(self) -> str:
        """The common start of all outputs' keys. Other objects' keys may start with it, too."""
        return self.prefix + _STEM

    def is_output(self, key: str) -> bool:
        """Return whether :meth:`key` could return a key. Deeper keys are of other partitions."""
        named = key.startswith(self.stem_prefix)
        return named and _NAME_REST.fullmatch(key, len(self.stem_prefix)) is not None

    def metadata(self, group: ObjectGroup) -> dict[str, str]:
        """Return an output's metadata: the identity of its log and the id of its group.

        Raises:
            IntegrityError: the log's identity has changed.
            InvalidInput: the state belongs to another destination.
        """
        log_id = self.log_id if isinstance(self.log_id, str) else self.log_id()
        return {LOG_METADATA: log_id, GROUP_METADATA: group.id} if log_id else {}


def is_output_name(key: str) -> bool:
    """Return True if a key is named like an output, in whatever partition."""
    return _OUTPUT.fullmatch(key) is not None
