"""Verifies published commits again from what is stored.

deep       compares a commit, as the destination's readers read it, with its sources
originals  what one reader saw in all sources of a commit
adopt      rebuilds a lost log from outputs and sources
rehearsal  a store that builds outputs without storing them
"""
