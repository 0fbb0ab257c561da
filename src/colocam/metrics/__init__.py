"""How right the boxes, maps and presences are; every number that needs ground truth is computed here."""

from colocam.metrics.hits import box_hits

__all__ = ["box_hits"]
