"""Small handlers that list and plan tables as the execution input says, and services that fail.

The input is ``{"s3_state_uri", "engines": {table: engine}, "partitions", "trouble", "scratch"}``
beside what a request has; ``trouble`` as in ``fake_handlers``. Whatever takes leases, checks
receipts and reports is the real thing.
"""
