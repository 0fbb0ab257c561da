"""Boxes over time: cuts between shots, presence, the best path, smoothing, tracks of several objects."""
