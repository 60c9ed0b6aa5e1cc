"""The deployment: one app, one file of keys, two stacks.

config         deployment.toml, decoded and checked
app            the entry point for `cdk`; `build` returns an app without it
compaction     the stack that compacts; standalone: the one function in place of its workflow
maintenance    the stack that maintains tables that others write
  storage      buckets, and the prefixes in them
  grants       IAM statements for buckets, each wildcard with its reason
  tables       the tables that runs write, and the rights to them
  functions    Lambda functions that share a bundle, each with its own role
  machines     a state machine, its Map Runs, its schedule
  spark        EMR Serverless, or steps on a running cluster
  events       runs started by events, and the registry of objects that they announced
  monitoring   the dashboard and the alarms
assets         the bundles as assets, named by their inputs
regions        what a region lacks
"""

from __future__ import annotations

import os as _os
import sys as _sys
from pathlib import Path as _Path

#: The directory of the checkout.
REPOSITORY = _Path(__file__).resolve().parents[1]

# The CDK runs on Node.js. Use the locked one, installed next to this Python, regardless of PATH.
_node = _Path(_sys.executable).with_name("node")
if _node.is_file():
    _os.environ.setdefault("JSII_NODE", str(_node))
