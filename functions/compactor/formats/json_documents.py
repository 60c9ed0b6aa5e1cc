"""JSON objects on one line that are documents of their own: their readers take one to a file.

An object on one line is a line of JSON lines, and is joined with others. These are known to be read
otherwise, and are told by members that all of their kind have.

Sources: RFC 7946 (GeoJSON), the TopoJSON specification, the Jupyter notebook format, HTTP
Archive 1.2, the OpenAPI Specification, CycloneDX, SPDX 2, SARIF 2.1.0, glTF 2.0, JSON-LD 1.1,
npm's package-lock.json and Terraform's state.
"""

from __future__ import annotations

import re

import msgspec

# Any of these stands in every such document; found in other objects, too, it proves nothing yet.
_MARKS = re.compile(
    rb'"(?:FeatureCollection|Topology|nbformat|entries|openapi|swagger|bomFormat|spdxVersion|runs'
    rb'|meshes|scenes|@graph|lockfileVersion|terraform_version)"'
)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_KINDS = (
    ("a Jupyter notebook", ("nbformat", "cells")),
    ("an OpenAPI document", ("openapi", "info")),
    ("an OpenAPI document", ("swagger", "info")),
    ("a CycloneDX bill of materials", ("bomFormat",)),
    ("an SPDX document", ("spdxVersion",)),
    ("a SARIF log", ("runs", "version")),
    ("a glTF asset", ("asset", "meshes")),
    ("a glTF asset", ("asset", "scenes")),
    ("a JSON-LD document", ("@graph",)),
    ("a package-lock.json", ("lockfileVersion",)),
    ("a Terraform state", ("terraform_version",)),
)
_TYPES = {b'"FeatureCollection"': "a GeoJSON document", b'"Topology"': "a TopoJSON document"}


def document_in(text: bytes) -> str:
    """What the one object of a source is, in words; empty where it may be a line among others.

    Args:
        text: one whole JSON object, perhaps with blanks around it.
    """
    if _MARKS.search(text) is None:
        return ""
    members = _decoded(text)
    if members is None:
        return ""
    if "features" in members or "objects" in members:
        kind = _TYPES.get(bytes(members.get("type", b"")))
        if kind:
            return kind
    if _is_archive(members):
        return "an HTTP archive"
    return next((kind for kind, names in _KINDS if members.keys() >= set(names)), "")


def _is_archive(members: dict[str, msgspec.Raw]) -> bool:
    log = _decoded(bytes(members["log"])) if "log" in members else None
    return log is not None and log.keys() >= {"version", "creator", "entries"}


def _decoded(text: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return _members.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
