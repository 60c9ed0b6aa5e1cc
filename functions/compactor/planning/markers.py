"""Names that show that a table or a registry owns everything below a prefix. Pure.

Sources: Delta Lake protocol (``_delta_log/``); Apache Iceberg table specification and its file
names (``metadata/``); Apache Hudi (``.hoodie/``); Apache Paimon's file layout (``schema/``);
Spark's FileStreamSinkLog (``_spark_metadata/``); OCI image layout (``oci-layout``,
``blobs/sha256/``); CNCF Distribution (``docker/registry/v2/``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from compactor.model import SkipReason, SourceObject

#: Owned prefixes, each with the reason why its objects are left alone.
Roots = Mapping[str, SkipReason]

#: Levels that mark the prefix they lie in.
LEVELS = (".hoodie/", "_delta_log/", "_spark_metadata/")
#: Levels that mark it only if they contain a file of Iceberg or Paimon.
PERHAPS = ("metadata/", "schema/")
#: The object that marks it.
LAYOUT = "oci-layout"
_ICEBERG_FILE = (
    r"(?:[^/]*\.metadata\.json(?:\.gz)?|version-hint\.text|snap-\d+-[^/]*\.avro|[^/]*-m\d+\.avro)"
)
_PERHAPS = rf"metadata/{_ICEBERG_FILE}\Z|schema/schema-\d+\Z"
_TABLE = "|".join(re.escape(level) for level in LEVELS)
_DIGEST = r"(?:[0-9a-f]{2}/)?[0-9a-f]{64}(?:/|\Z)"
# In a registry, the owned prefix ends with the matched name, except for an image layout.
_ROOT = re.compile(
    rf"(?:^|(?<=/))(?:(?P<table>{_TABLE}|{_PERHAPS})|(?P<layout>{LAYOUT}\Z)"
    rf"|(?P<registry>docker/registry/v2/|blobs/sha256/(?={_DIGEST})))"
)
# Levels whose objects may prove that a prefix is owned.
_MARKING_LEVELS = re.compile(
    rf"(?:^|/)(?:{_TABLE}|(?:{'|'.join(PERHAPS)})\Z|docker/registry/v2/|blobs/sha256/)"
)


def root_in(key: str) -> tuple[str, SkipReason] | None:
    """Return the outermost owned prefix that a key proves, and the reason; None for none."""
    match = _ROOT.search(key)
    if match is None:
        return None
    if match["registry"]:
        return key[: match.end()], SkipReason.REGISTRY
    return key[: match.start()], SkipReason.TABLE if match["table"] else SkipReason.REGISTRY


def roots_in(objects: Iterable[SourceObject]) -> dict[str, SkipReason]:
    """Return all owned prefixes that a listing proves."""
    roots: dict[str, SkipReason] = {}
    level, marks = "", False
    for source in objects:
        key = source.key
        at = key.rfind("/") + 1
        # Adjacent keys mostly lie in the same level.
        if key[:at] != level:
            level = key[:at]
            marks = _MARKING_LEVELS.search(level) is not None
        if marks or key.endswith(LAYOUT):
            root = root_in(key)
            if root is not None:
                roots[root[0]] = root[1]
    return roots


def owner_of(key: str, roots: Roots) -> SkipReason | None:
    """Return why a key is left alone, or None if no root contains it."""
    return next((reason for root, reason in roots.items() if key.startswith(root)), None)
