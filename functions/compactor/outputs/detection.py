"""Format detection as the settings require it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from compactor.formats import Detected, PassingCheck, detect
from compactor.settings.settings import Settings

_DIGEST_BYTES = 8


# Takes the first plain bytes, the key, and whether the bytes are the whole content; returns what
# compactor.formats.detect returns.
Detector = Callable[[bytes, str, bool], Detected | None]


def detector(settings: Settings) -> Detector:
    """Return :func:`compactor.formats.detect` with the declarations of the settings.

    Like that function, the returned one raises UnreadableSource.
    """

    def detected(head: bytes, key: str, complete: bool) -> Detected | None:
        return detect(head, key, complete=complete, declaration=settings.declared(key))

    return detected


def passing_check(detected: Detected, key: str, settings: Settings) -> PassingCheck:
    """Return the check for a source that is read in chunks."""
    declaration = settings.declared(key)
    single_byte = declaration is not None and declaration.single_byte
    return PassingCheck(detected, single_byte=single_byte)


def decided_by(settings: Settings) -> str:
    """Return a name for what decides formats: 16 hex digits.

    A source left alone because its format is uncertain is tried again when this name changes.
    """
    text = "\0".join((settings.formats_text, settings.output_format))
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
