"""Print pip constraints that pin each dependency to the lowest version pyproject.toml allows. Needs no package.

``make lowest`` installs with them and runs a part of the tests. A bound must be a version that exists: pip fails
otherwise. Packages without a bound are left out, and those that ``--free`` names.
"""

import argparse
import re
import tomllib
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def lowest(project: dict[str, Any], free: list[str]) -> list[str]:
    """``name==version`` for each requirement ``name>=version`` of the project and its extras.

    Args:
        project: the table ``project`` of pyproject.toml.
        free: packages to leave out.
    """
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(one for extra in extras for one in extra)]
    found = [re.fullmatch(r"([\w-]+)>=([\w.]+)", one) for one in wanted]
    return sorted({f"{match[1]}=={match[2]}" for match in found if match and match[1] not in free})


def main() -> None:
    """Print the constraints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--free", nargs="*", default=[], help="packages that may have any version")
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(lowest(project, parser.parse_args().free)))


if __name__ == "__main__":
    main()
