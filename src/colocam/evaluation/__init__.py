"""Evaluate a run, or predictions of any program, against true boxes.

Private but for ``colocam.evaluation.metrics``: ``colocam.evaluate`` and ``colocam.evaluate_predictions`` are its entry.
"""

__all__: list[str] = []
