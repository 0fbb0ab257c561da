"""Check before the installation that Python is new enough and the disk has space for torch. Needs no package."""

import shutil
import sys

needed = float(sys.argv[1])
if sys.version_info < (3, 11):  # noqa: UP036 - this is the check that tells the user
    sys.exit(f"colocam needs Python 3.11 or newer, this is {sys.version.split()[0]}: try make PYTHON=python3.12 …")
free = shutil.disk_usage(".").free / 1e9
if free < needed:
    sys.exit(f"installing needs about {needed:.0f} GB and {free:.1f} GB are free here: free some space first")
