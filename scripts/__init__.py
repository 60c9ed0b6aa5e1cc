"""What a person runs: the command line, the local engine, the generator, the benchmarks."""
