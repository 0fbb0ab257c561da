"""The laboratory: benchmarks, the studies of the paper, and what measured the numbers of the documentation.

It is no part of the wheel. ``colocam bench`` and ``colocam study`` find it in a clone; ``python -m lab.runs`` and
``python -m lab.corrections`` run from there.
"""
