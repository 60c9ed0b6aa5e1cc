"""What the settings say about formats, applied to the bytes of a source."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from compactor.formats import Decide, Detected, PassingCheck, detect
from compactor.log.left_alone import WAITS
from compactor.model import Format, Signature
from compactor.settings.object_rules import csv_header_of
from compactor.settings.settings import Settings

_DIGEST_BYTES = 8


# First plain bytes, key, whether they are all -> as compactor.formats.detect.
Detector = Callable[[bytes, str, bool], Detected | None]


def detector(settings: Settings, decide: Decide) -> Detector:
    """Finds the format of many sources as :func:`compactor.formats.detect` does, by the settings.

    Its calls raise UnreadableSource likewise.

    Args:
        settings: of the run.
        decide: what the data set of a CSV source says of its first record.
    """
    forced, reading = forced_format(settings), settings.characters
    declared = csv_header_of(settings)

    def detected(head: bytes, key: str, complete: bool) -> Detected | None:
        return detect(
            head,
            key,
            complete=complete,
            forced=forced,
            reading=reading,
            csv_header=declared(key),
            decide=decide,
        )

    return detected


def passing_check(signature: Signature, settings: Settings) -> PassingCheck:
    """What is asked of a source of this signature while it passes in chunks."""
    forced = settings.format != "auto"
    reading = settings.characters
    return PassingCheck(signature.format, signature.header, forced=forced, reading=reading)


def forced_format(settings: Settings) -> Format | None:
    """The format the settings insist on; None for ``auto``."""
    return None if settings.format == "auto" else Format(settings.format)


def deciding_settings(settings: Settings) -> tuple[str, ...]:
    """The values of the settings that decide what a source is, and how it is read and joined."""
    return (
        settings.format,
        settings.csv_header,
        settings.encoding,
        settings.documents,
        settings.output_format,
        settings.second_reading,
        *settings.csv_rules,
    )


def decided_by(settings: Settings, dialects: str | None = None) -> str:
    """Names what decides formats: 16 hex digits for the settings.

    A source that was left alone because its format is not certain is tried again when this is
    another name.

    Args:
        settings: of the run.
        dialects: the version of what is pinned for the data set
            (:meth:`compactor.planning.dialects.Dialects.version`), for sources that wait for that.
    """
    text = "\0".join(deciding_settings(settings))
    name = hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return name if dialects is None else name + WAITS + dialects
