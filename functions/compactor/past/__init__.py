"""Commits of the past: examined, taken back, found again.

deep       a commit read as the destination's readers read it, beside its sources
originals  what one reader saw in all sources of a commit
rehearsal  a store in which outputs are put together and not stored
undo       the verb: a published commit is taken back while its sources stand
adopt      the verb: a log that is gone, built anew from outputs and sources
"""
