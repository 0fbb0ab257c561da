"""The report of a run: tables in the terminal, and a page with results, examples and training curves."""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names
from colocam.video.drawing import draw_localization

if TYPE_CHECKING:
    from colocam.report.page import write_report
    from colocam.report.run_review import review_run

__all__ = ["draw_localization", "review_run", "write_report"]

# The page imports jinja2, which the light installation does not have; tables and drawing do not need it.
__getattr__, __dir__ = lazy_names(
    __name__, {"review_run": "colocam.report.run_review", "write_report": "colocam.report.page"}
)
