"""What people look at: overlays on frames, training curves, galleries, one self-contained page per run."""

from typing import TYPE_CHECKING

from colocam.drawing.overlay import draw_localization
from colocam.utils.lazy import lazy_names

if TYPE_CHECKING:
    from colocam.report.page import write_report

__all__ = ["draw_localization", "write_report"]

# the page knows the metrics, and they need torch, which those who only draw do without
__getattr__, __dir__ = lazy_names(__name__, {"write_report": "colocam.report.page"})
