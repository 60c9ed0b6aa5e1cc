"""The product uses no private or undocumented name of a library that it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO_ROOT

PRODUCT = (
    "functions",
    "spark",
    "cdk",
)
LIBRARIES = (
    "boto3",
    "botocore",
    "deltalake",
    "duckdb",
    "msgspec",
    "pyarrow",
    "pycurl",
    "pyiceberg",
    "urllib3",
)
# botocore's documentation (docs/source) has a page for each of these, its events among them, and
# boto3's guides use the others. Of awsrequest it names what before-send gives and takes.
DOCUMENTED = {
    "boto3": {""},
    "botocore": {"", ".config", ".exceptions", ".loaders", ".session"},
    "urllib3": {""},
}
NAMES = {"botocore.awsrequest": {"AWSPreparedRequest", "AWSResponse"}}


def modules() -> Iterator[Path]:
    for place in PRODUCT:
        yield from sorted((REPO_ROOT / place).rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Modules, and what is taken from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, one.name) for one in node.names)


def undocumented(source: str) -> list[str]:
    """Of the libraries: modules and names that their documentation has not."""
    found = []
    for module, name in imported(ast.parse(source)):
        library, dot, rest = module.partition(".")
        if library not in LIBRARIES:
            continue
        private = any(one.startswith("_") for one in (*rest.split("."), name))
        known = DOCUMENTED.get(library)
        is_known = known is None or f"{dot}{rest}" in known or name in NAMES.get(module, ())
        if private or not is_known:
            found.append(f"{module} {name}".strip())
    return found


def private_attributes(source: str) -> list[str]:
    """Private attributes of anything but self and cls, where one of the libraries is imported."""
    tree = ast.parse(source)
    if not any(module.partition(".")[0] in LIBRARIES for module, _ in imported(tree)):
        return []
    own = {
        one.attr if isinstance(one, ast.Attribute) else one.name
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
        or (isinstance(one, ast.Attribute) and _is_self(one.value))
    }
    return [
        ast.unparse(one)
        for one in ast.walk(tree)
        if isinstance(one, ast.Attribute)
        and one.attr.startswith("_")
        and not one.attr.startswith("__")
        and one.attr not in {"_replace", "_asdict", "_exit"}
        and one.attr not in own
        and not _is_self(one.value)
    ]


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def test_no_undocumented_module_or_name_is_imported() -> None:
    found = {str(path): undocumented(path.read_text("utf-8")) for path in modules()}
    assert {path: names for path, names in found.items() if names} == {}


def test_no_private_attribute_is_used() -> None:
    found = {str(path): private_attributes(path.read_text("utf-8")) for path in modules()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import botocore.endpoint",
        "from botocore.auth import SigV4Auth",
        "from botocore.awsrequest import AWSRequest",
        "from urllib3.connection import HTTPConnection",
        "from pyiceberg.io.pyarrow import _read_deletes",
        "import pyiceberg\nrecord._data",
    ],
)
def test_what_is_not_documented_is_found(source: str) -> None:
    assert undocumented(source) or private_attributes(source)
