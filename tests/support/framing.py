"""What the manifest holds of a framed source, for tests that frame without an output."""

from __future__ import annotations

from compactor.formats.framing import Framed
from compactor.log.manifest import SliceFacts


def facts_of(framed: Framed) -> SliceFacts:
    """Return the facts needed to undo the framing of one source."""
    # All but the first two, which are the bytes themselves.
    return SliceFacts(*framed[2:])
