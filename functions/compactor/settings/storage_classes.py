"""S3's storage classes for which this project has prices, as S3 names them."""

from __future__ import annotations

STANDARD = "STANDARD"
STANDARD_IA, ONEZONE_IA, GLACIER_IR = "STANDARD_IA", "ONEZONE_IA", "GLACIER_IR"
GLACIER, DEEP_ARCHIVE = "GLACIER", "DEEP_ARCHIVE"
INTELLIGENT_TIERING = "INTELLIGENT_TIERING"
#: All storage classes above.
STORAGE_CLASSES = (
    STANDARD,
    STANDARD_IA,
    ONEZONE_IA,
    INTELLIGENT_TIERING,
    GLACIER_IR,
    GLACIER,
    DEEP_ARCHIVE,
)
