"""The deployment: one app, one stack, a module for each capability.

deployment_fields   every key of the configuration, described once
readers             parsers and checks for keys that are not fields of a run
config              the configuration, read from the context and checked
app                 the entry point for `cdk`; `synthesize` returns a template without it
stack               puts the following together
  storage           buckets, and the prefixes that runs use in them
  grants            IAM statements for buckets and the registry
  registry          the DynamoDB table of objects that S3 events announced
  reader_table      the table that query engines read: rights to switch and read its partitions
  tables            the table that outputs are published to, and its key table
  function_set      Lambda functions that share a bundle, each with its own role
  functions         the functions of compaction
  spark             what the oversized branch needs; emr: the services it may run on
  workflow          the state machine and its own rights
  machines          what every state machine has: log, Map Runs, rights of its tasks
  managed_rules     rights to the EventBridge rules that `.sync` tasks need
  maintenance       the second state machine, for tables that others write, with its functions
  maintained_tables where those tables are, and the rights to them
  standalone        one function instead of the workflow, for small sources
  schedule          the schedule of runs
  ingest            runs started by events; notifications: enables them on an existing bucket
  monitoring        the dashboard; metrics: its numbers; alarms: when a person is notified
bundles             builds the bundles of the functions and the Spark job; `make spark-bundle`
spark_jars          jars of Iceberg and Delta for Spark; `make spark-jars`
assets              the bundles as assets, named by their inputs
emr_serverless      stops an idle application before it is changed; which regions have it
checks              cdk-nag and our own Guard rules, at every synth
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
