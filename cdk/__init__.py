"""The deployment: one app, one stack, a module for each capability.

deployment_fields   every key of the configuration, described once
readers             how keys are checked that are like none of a run's fields
config              the configuration: read from the context, checked
app                 what `cdk` starts; `synthesize` gives a template without it
stack               puts the following together
  storage           buckets and the places in them
  grants            what a role may do there
  registry          the table of objects that wait, where S3 names them by events
  reader_table      the table that query engines read: who switches its partitions
  tables            the table that outputs are published to, and that of its keys
  function_set      Lambda functions of one bundle, a role for each
  functions         those of compaction
  spark             what the oversized branch needs; emr: the services it may run on
  workflow          the state machine and its own rights
  machines          what every state machine has: log, Map Runs, rights of its tasks
  managed_rules     the rights that Step Functions wants of every machine with such tasks
  maintenance       the second state machine, over tables that others write, with its functions
  maintained_tables what of them a role must reach
  standalone        one function instead of the workflow, for small sources
  schedule          when it starts
  ingest            what else starts it: events; notifications: of a bucket that is there already
  monitoring        the dashboard; metrics: its numbers; alarms: when a person is called
keys_table          the table of keys in docs/deployment.md
bundling            what the functions and the Spark job are made of
checks              cdk-nag and our own Guard rules, at every synth
"""

from __future__ import annotations

import os as _os
import sys as _sys
from pathlib import Path as _Path

# The CDK runs on Node.js: on the one of the lock, which is beside this Python, whatever PATH says.
_node = _Path(_sys.executable).with_name("node")
if _node.is_file():
    _os.environ.setdefault("JSII_NODE", str(_node))
