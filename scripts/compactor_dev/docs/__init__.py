"""Checks of the documents, and of the words in them and in the code: ``make check`` runs them.

pages       a page: prose, code blocks, headings, links
references  what a page names exists: paths, tests, modules, options, settings, commands
links       links and anchors resolve; every page can be reached
commands    what can be copied is a command that the parser takes
prose       length of lines
words       words that this project does not use, in words.toml
spelling    codespell
allowed     the violations that are there now, in allowed.json; --update-allowed rewrites it
sizes       words by document, against the aims
"""
