"""Stores are asked before they are trusted: which of the conditions they honour.

probe      the verb
questions  each condition, tried on objects of its own
probe_records    the answers, remembered below the state prefix
rights     all that the role of a run lacks
"""
