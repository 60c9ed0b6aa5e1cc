"""A first look at a bucket: what is below a prefix, and what to declare about it. Read-only.

listing    lists keys, and sums them up by directory, extension and storage class
dates      the date in the levels of a key
layouts    how keys are divided into partitions
columns    how CSV is delimited, and whether it has a header
proposals  the format of each family of keys, from the first bytes of a few objects
coverage   what a run would take with these declarations, and what that costs
jobs       the input of that run
"""
