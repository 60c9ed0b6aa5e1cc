"""The command line: commands, and access to deployed stacks."""
