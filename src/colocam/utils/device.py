"""How many cores there are to use."""

import os
from functools import cache


@cache
def cores() -> int:
    """Cores that this process may use; libraries often count those that it may not."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
