"""S3's storage classes for which this project has prices, as S3 names them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
#: Days for which S3 bills an object at least, even if it is deleted, overwritten or moved earlier
#: (AmazonS3/latest/userguide/storage-class-intro.html). The other classes have no such minimum.
MINIMUM_DAYS: Mapping[str, int] = MappingProxyType(
    {STANDARD_IA: 30, ONEZONE_IA: 30, GLACIER_IR: 90, GLACIER: 90, DEEP_ARCHIVE: 180}
)
