"""What benchmarks and studies share: clocks, synthetic frames, the record of a measurement."""
