"""What a page names in code spans exists: paths, tests, modules, options, settings, targets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from compactor_dev.docs.pages import Finding
from compactor_dev.docs.tree import Tree

_TOP = ("functions/", "scripts/", "spark/", "cdk/", "tests/", "docs/", "statemachine/", ".ci/")
_FILE = re.compile(r"[\w.*/-]+\.(?:py|md|sh|asl\.json|toml|txt)")
_MODULE = re.compile(r"(?:compactor(?:_[a-z]+)?|cdk|tests)(?:\.\w+)+")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_TEST = re.compile(r"(?<![\w/.])test_\w+(?!\w|\.py|[*/])")
_SETTING = re.compile(r"(?<![\w/.<{-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/.>}(*-])")
_GLOB = set("*<>{}…?")
# Names of Iceberg's procedures, of Terraform, and of views that queries make for each format.
_FOREIGN = frozenset(
    {
        "aws_s3_bucket_notification",
        "records_csv",
        "records_json",
        "remove_orphan_files",
        "rewrite_manifests",
        "rewrite_position_delete_files",
    }
)
# Of programs that are not ours.
_OTHERS = ("aws ", "git ", "pip ", "docker ", "spark-submit", "npm ", "curl ", "uv ")


def lost_references(tree: Tree) -> Iterator[Finding]:
    """Names in code spans that nothing has."""
    for page in tree.pages:
        for span in page.spans:
            for rule, subject in _lost(span, tree):
                yield Finding(page.path, rule, subject)


def _lost(span: str, tree: Tree) -> Iterator[tuple[str, str]]:
    if span.startswith(_OTHERS) or "://" in span:
        return
    for rule, names, exists in _RULES:
        for name in names(span):
            if not exists(name, tree):
                yield rule, name


def _paths(span: str) -> Iterator[str]:
    """What is meant as a path of the checkout."""
    for word in re.split(r"[\s,;()]+", span):
        if _GLOB & set(word):
            continue
        path = word.strip("'\"").removeprefix("./")
        if _FILE.fullmatch(path) or path.startswith(_TOP):
            yield path


def _exists(path: str, tree: Tree) -> bool:
    """Whether a file, a directory, or the end of a path below a package is there."""
    whole = path.rstrip("/").partition("::")[0]
    if whole in tree.names:
        return True
    # Files that runs and users have are named by their own name alone.
    if "/" not in whole and not whole.endswith((".py", ".asl.json")):
        return True
    return not path.startswith(_TOP) and any(one.endswith(f"/{whole}") for one in tree.names)


def _is_module(module: str, tree: Tree) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    path = module.replace(".", "/")
    roots = ("functions/", "scripts/", "spark/", "")
    if any(f"{root}{path}{end}" in tree.names for root in roots for end in ("", ".py")):
        return True
    above, _, name = module.rpartition(".")
    return name in tree.words and ("." not in above or _is_module(above, tree))


def _is_test(test: str, tree: Tree) -> bool:
    return test in tree.tests


def _is_name(name: str, tree: Tree) -> bool:
    """Whether the code has the name of a setting, a field or a function."""
    return name in tree.words or name in _FOREIGN or name.startswith("test_")


def _is_option(option: str, tree: Tree) -> bool:
    """Whether some program takes an option, or a field makes one of it."""
    field = option.removeprefix("--").removeprefix("no-").replace("-", "_")
    return option in tree.options or field in tree.words


_RULES: tuple[tuple[str, Callable[[str], Iterable[str]], Callable[[str, Tree], bool]], ...] = (
    ("path", _paths, _exists),
    ("module", _MODULE.findall, _is_module),
    ("test", _TEST.findall, _is_test),
    ("option", _OPTION.findall, _is_option),
    ("name", _SETTING.findall, _is_name),
)
