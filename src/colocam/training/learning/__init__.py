"""Learn from corrections: what people said about frames changes the thresholds, the head and the decoder of a run."""
