"""The command line, and what it needs beside the core: the local engine, the generator, stacks."""
