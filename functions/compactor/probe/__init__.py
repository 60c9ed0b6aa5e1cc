"""Probes a store for the conditions that it honours, before anything is trusted to it.

probe          when to probe, and what follows from the findings
questions      tries each condition on objects of its own
probe_records  the findings, stored below the state prefix
rights         the permissions that a run's role lacks
"""
