"""Studies: each repeats a table or figure of the paper and shows the published numbers beside ours."""

from lab.study.runner import STUDIES, list_studies, run_study

__all__ = ["STUDIES", "list_studies", "run_study"]
