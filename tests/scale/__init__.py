"""A hundred million objects, on an S3 of formulas: what runs would take, and what they would cost.

The handlers of the Lambda functions run as they are, on the store as it is: discovery, planning,
commit log, receipts, report, the planning of clean-up. Only three things are made up: what S3
answers to a LIST follows from a formula, bodies of sources are skipped, and time is virtual.

keys      which objects there are, by formula
services  what S3, Lambda and Step Functions allow, how long they take, and their prices
wire      the answers of S3, put in where botocore would send a request
meter     the virtual time of one invocation, and what it asked for
bodies    stands in for reading, framing and storing the sources of one group
account   calls the handlers, one invocation at a time
cases     the runs that are simulated, each by a sample of its partitions
workflow  the state machine's definition walked: transitions, history events
fleet     workers side by side: how long all of them take
figures   what one run comes to
memory    the peak of what is held, by function
table     the figures and the goals, for a person and for docs/performance.md
"""
