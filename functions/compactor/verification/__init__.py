"""Verifies published commits again from what is stored.

adopt      rebuilds a lost log from outputs and sources
rehearsal  a store that builds outputs without storing them
"""
