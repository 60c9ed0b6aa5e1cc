"""What AWS's services take for their work on a table; us-east-1, November 2026."""

from __future__ import annotations

#: For what queries scan: "Amazon Athena pricing", SQL queries with per query billing.
ATHENA_DOLLARS_PER_TB = 5.0
#: For optimizers of Iceberg tables, by the second: "AWS Glue pricing", Data Catalog.
GLUE_DOLLARS_PER_DPU_HOUR = 0.44
