"""Format detection as the settings require it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from compactor.formats import Decide, Detected, PassingCheck, detect
from compactor.log.left_alone import WAITS
from compactor.model import Format, Signature
from compactor.settings.settings import Settings

_DIGEST_BYTES = 8


# Takes the first plain bytes, the key, and whether the bytes are the whole content; returns what
# compactor.formats.detect returns.
Detector = Callable[[bytes, str, bool], Detected | None]


def detector(settings: Settings, decide: Decide) -> Detector:
    """Return :func:`compactor.formats.detect` with the arguments that the settings determine.

    Like that function, the returned one raises UnreadableSource.

    Args:
        settings: the run's settings.
        decide: returns what is decided about the first record of a CSV source's data set.
    """
    forced, reading = forced_format(settings), settings.characters

    def detected(head: bytes, key: str, complete: bool) -> Detected | None:
        return detect(
            head,
            key,
            complete=complete,
            forced=forced,
            reading=reading,
            csv_header=settings.csv_header_of(key),
            decide=decide,
        )

    return detected


def passing_check(signature: Signature, settings: Settings) -> PassingCheck:
    """Return the check for a source of this signature that is read in chunks."""
    forced = settings.format != "auto"
    reading = settings.characters
    return PassingCheck(signature.format, signature.header, forced=forced, reading=reading)


def forced_format(settings: Settings) -> Format | None:
    """Return the format that the settings declare; None for ``auto``."""
    return None if settings.format == "auto" else Format(settings.format)


def deciding_settings(settings: Settings) -> tuple[str, ...]:
    """Return the settings that decide what a source is, and how it is read and joined."""
    return (
        settings.format,
        settings.csv_header_text,
        settings.encoding,
        settings.documents,
        settings.output_format,
    )


def decided_by(settings: Settings, dialects: str | None = None) -> str:
    """Return a name for what decides formats, which begins with 16 hex digits for the settings.

    A source left alone because its format is uncertain is tried again when this name changes.

    Args:
        settings: the run's settings.
        dialects: the version of the dialects pinned for the data set
            (:meth:`compactor.planning.dialects.Dialects.version`), for sources that wait for them.
    """
    text = "\0".join(deciding_settings(settings))
    name = hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return name if dialects is None else name + WAITS + dialects
