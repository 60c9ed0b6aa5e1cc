"""JSON objects on one line that are documents: their readers expect one per file.

An object on one line is usually a line of JSON lines and can be joined with others. The documents
below are known to be read differently, and are recognised by members that all of their kind have.

Sources: RFC 7946 (GeoJSON), the TopoJSON specification, the Jupyter notebook format, HTTP
Archive 1.2, the OpenAPI Specification, CycloneDX, SPDX 2, SARIF 2.1.0, glTF 2.0, JSON-LD 1.1,
JSON Schema 2020-12, Apache Avro 1.12, Source Map (ECMA-426), npm's package.json and
package-lock.json, Terraform's state, AWS CloudFormation templates, IAM's policy grammar, the
Amazon States Language, the Kubernetes API conventions,
the OCI image specification 1.1, Docker Image Manifest V2, Apache Iceberg's table specification,
the Delta Lake protocol, Apache Hudi's timeline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

Members = dict[str, msgspec.Raw]
# Every such document has one of these. Other objects may have them too, so it proves nothing yet.
_MARKS = re.compile(
    rb'"(?:FeatureCollection|Topology|nbformat|entries|openapi|swagger|bomFormat|spdxVersion|runs'
    rb"|meshes|scenes|@graph|lockfileVersion|terraform_version|serial|format-version"
    rb"|tableSizeBytes|partitionToWriteStats|AWSTemplateFormatVersion|Resources|apiVersion"
    rb"|\$schema|properties|fields|symbols|fixed|mappings|(?:dev|peer)?[dD]ependencies|scripts"
    rb"|private|license|engines|exports|repository|Statement|StartAt"
    rb'|schemaVersion|imageLayoutVersion|rootfs)"'
)
_members = msgspec.json.Decoder(Members)
_string = msgspec.json.Decoder(str)
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
    ("a Terraform state", ("version", "serial", "resources")),
    ("the metadata of an Iceberg table", ("format-version", "location", "last-updated-ms")),
    ("the metadata of an Iceberg view", ("format-version", "view-uuid", "versions")),
    ("the checksums of a Delta table's version", ("tableSizeBytes", "numFiles", "numMetadata")),
    ("a commit of a Hudi table", ("partitionToWriteStats",)),
    ("a CloudFormation template", ("AWSTemplateFormatVersion",)),
    ("a policy of IAM", ("Version", "Statement")),
    ("a state machine of Step Functions", ("StartAt", "States")),
    ("a source map", ("version", "sources", "mappings")),
    ("an OCI image manifest", ("schemaVersion", "config", "layers")),
    ("an OCI image index", ("schemaVersion", "manifests")),
    ("an image manifest of Docker", ("schemaVersion", "fsLayers")),
    ("an OCI image layout", ("imageLayoutVersion",)),
    ("an OCI image configuration", ("architecture", "os", "rootfs")),
)
_RESOURCE = re.compile(rb'"Type"[ \t]*:[ \t]*"(?:AWS|Custom|Alexa)::')
# Records of events in a cluster: these are logs.
_KUBERNETES_LOGS = re.compile(r"Event|AdmissionReview")
# The members that Avro's named types have besides their name.
_AVRO = {"record": "fields", "error": "fields", "enum": "symbols", "fixed": "size"}
_PACKAGE = ("dependencies", "devDependencies", "peerDependencies", "scripts")
# Besides a name and a version; no log has them.
_PUBLISHED = frozenset({"private", "license", "engines", "exports", "repository"})
# Actions of a Delta commit, each with members that it always has.
_ACTIONS: Mapping[str, frozenset[str]] = {
    "commitInfo": frozenset({"operation"}),
    "protocol": frozenset({"minReaderVersion"}),
    "metaData": frozenset({"id", "schemaString"}),
    "add": frozenset({"path", "dataChange"}),
    "remove": frozenset({"path", "dataChange"}),
    "cdc": frozenset({"path", "dataChange"}),
    "txn": frozenset({"appId", "version"}),
    "domainMetadata": frozenset({"domain", "configuration"}),
}
_ACTION = re.compile(rb'[ \t]*\{[ \t]*"(?:%b)"' % "|".join(_ACTIONS).encode())


def document_in(text: bytes) -> str:
    """Return what document the one object of a source is; empty if it may be a line among others.

    Args:
        text: one whole JSON object; blanks around it are allowed.
    """
    if _MARKS.search(text) is None:
        return ""
    members = members_of(text)
    if members is None:
        return ""
    named = (kind for kind, names in _KINDS if members.keys() >= set(names))
    return next(named, "") or next((kind for kind, is_one in _PROVEN if is_one(members)), "")


def is_delta_action(line: bytes) -> bool:
    """Return whether a line is an action of a Delta table. Those of one commit belong together."""
    if _ACTION.match(line) is None:
        return False
    (name, action), *others = (members_of(line) or {"": msgspec.Raw()}).items()
    inside = members_of(bytes(action)) if name in _ACTIONS and not others else None
    return inside is not None and inside.keys() >= _ACTIONS[name]


def members_of(text: bytes) -> Members | None:
    """Return the members of an object; None if msgspec does not accept the text as one."""
    try:
        return _members.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _is_archive(members: Members) -> bool:
    log = members_of(bytes(members["log"])) if "log" in members else None
    return log is not None and log.keys() >= {"version", "creator", "entries"}


def _is_template(members: Members) -> bool:
    return _RESOURCE.search(members.get("Resources", b"")) is not None


def _is_manifest(members: Members) -> bool:
    """Return whether it is a Kubernetes manifest, and not an entry of a Kubernetes log."""
    if not members.keys() >= {"apiVersion", "kind"}:
        return False
    parts = members.keys() & {"metadata", "items", "spec", "data"}
    return bool(parts) and _KUBERNETES_LOGS.match(_text(members, "kind")) is None


def _is_schema(members: Members) -> bool:
    if "json-schema.org" in _text(members, "$schema"):
        return True
    return _text(members, "type") == "object" and _is_object(members, "properties")


def _is_avro(members: Members) -> bool:
    return "name" in members and _AVRO.get(_text(members, "type"), "") in members


def _is_package(members: Members) -> bool:
    if members.keys() >= {"name", "version"} and not _PUBLISHED.isdisjoint(members):
        return True
    return "name" in members and any(_is_object(members, one) for one in _PACKAGE)


def _text(members: Members, name: str) -> str:
    try:
        return _string.decode(members[name])
    except (KeyError, msgspec.MsgspecError):
        return ""


def _is_object(members: Members, name: str) -> bool:
    return bytes(members.get(name, b"")).startswith(b"{")


def _is_of_type(name: str) -> Callable[[Members], bool]:
    return lambda members: (
        not members.keys().isdisjoint({"features", "objects"})
        and bytes(members.get("type", b"")) == name.encode()
    )


_PROVEN = (
    ("a GeoJSON document", _is_of_type('"FeatureCollection"')),
    ("a TopoJSON document", _is_of_type('"Topology"')),
    ("an HTTP archive", _is_archive),
    ("a CloudFormation template", _is_template),
    ("a manifest of Kubernetes", _is_manifest),
    ("a JSON Schema", _is_schema),
    ("an Avro schema", _is_avro),
    ("a package.json", _is_package),
)
