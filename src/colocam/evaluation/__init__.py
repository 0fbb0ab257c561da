"""Evaluate a run, or predictions of any program, against true boxes."""
