"""Let modules be missing in a new process and in all processes that it starts."""

import ast
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
HIDE = """import sys
sys.modules.update(dict.fromkeys({names!r}))  # importing them fails
{more}
"""


def hiding(folder: Path, names: Iterable[str], more: str = "") -> dict[str, str]:
    """An environment for processes that cannot import ``names``; ``more`` is code that each runs at its start."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(HIDE.format(names=sorted(names), more=more), encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}


def base_packages():
    """The packages of the base installation, as they are imported."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.split(r"[^\w-]", one)[0].lower() for one in wanted}
    imported = {"opencv-python-headless": "cv2", "pyyaml": "yaml", "pillow": "PIL"}
    return {imported.get(name, name) for name in names}


def packages_of_extras():
    """All packages that a file of ours imports anywhere, but for those of the base installation."""
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                used.add((node.module or "").partition(".")[0])
    return used - base_packages() - set(sys.stdlib_module_names) - {"colocam"}
