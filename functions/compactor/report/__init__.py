"""The account of a run, from what its partitions left behind.

report  its figures, as one document
html    the same as a page
"""
