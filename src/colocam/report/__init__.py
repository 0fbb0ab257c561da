"""What people look at: overlays on frames, training curves, galleries, one self-contained page per run."""

from colocam.report.overlay import draw_localization
from colocam.report.page import write_report

__all__ = ["draw_localization", "write_report"]
