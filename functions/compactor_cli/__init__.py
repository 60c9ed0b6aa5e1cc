"""The command line: commands, the generator, and access to deployed stacks."""
