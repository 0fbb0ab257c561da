"""Studies: each repeats a table or figure of the paper and shows the published numbers beside ours."""

from colocam.lab.study.recipes import STUDIES
from colocam.lab.study.runner import list_studies, run_study

__all__ = ["STUDIES", "list_studies", "run_study"]
