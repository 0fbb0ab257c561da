"""The laboratory: demo world, benchmarks and the studies of the paper; only the command line imports it."""
