"""Adapters to the tools of others, one file for each; their packages are extras and are imported on first use.

No file here imports torch: what needs it, a run folder, imports it when the model is opened.
"""

from colocam.errors import ColocamError
from colocam.utils.extras import install_extra


def missing(error: ModuleNotFoundError, extra: str) -> ColocamError:
    """The error for a package that is not installed; ``extra`` is the extra of colocam that brings it."""
    return ColocamError(f"{error.name} is not installed: {install_extra(extra)}")
