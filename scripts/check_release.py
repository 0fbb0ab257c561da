"""Check that everything names the same version before a release: python scripts/check_release.py v0.3.0.

Compares the tag with pyproject.toml, CITATION.cff, the first section of CHANGELOG.md, and the files in dist, if there
are any. Prints what differs, one line each, and exits with 1.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def differences(tag: str, root: Path = ROOT) -> list[str]:
    """What names another version than the tag."""
    expected = tag.removeprefix("v")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    found = {"pyproject.toml": project}
    citation = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    found["CITATION.cff"] = citation[1] if citation else "no version"
    section = re.search(r"^## (.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    found["CHANGELOG.md"] = section[1] if section else "no section"
    dated = re.fullmatch(r"(\S+) \(\d{4}-\d\d-\d\d\)", found["CHANGELOG.md"])
    if dated:
        found["CHANGELOG.md"] = dated[1]
    for path in sorted((root / "dist").glob("colocam-*")):
        found[f"dist/{path.name}"] = path.name.removesuffix(".tar.gz").split("-")[1]
    return [f"{place}: {version}, not {expected}" for place, version in found.items() if version != expected]


def main() -> None:
    """Print the differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag", help="for example v0.3.0")
    wrong = differences(parser.parse_args().tag)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
