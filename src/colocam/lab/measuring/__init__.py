"""Shared by benchmarks and studies: timing, synthetic frames, a training step, the record of a measurement."""
