"""Boxes over time: cuts between shots, presence, the best path, smoothing, tracks of several objects.

Private.
"""

__all__: list[str] = []
