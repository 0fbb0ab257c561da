"""Run the code of notebooks from top to bottom, each in a process of its own: python scripts/run_notebook.py FILES.

A cell that fails ends the script with its traceback. Figures are drawn and not shown. It needs no Jupyter: the
notebooks use plain Python.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path


def cells(notebook: Path) -> list[str]:
    """The code cells of a notebook of format 4."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def run(notebook: Path) -> None:
    """Run all cells in one namespace."""
    import matplotlib as mpl  # noqa: PLC0415 - not needed to start the processes

    mpl.use("Agg")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, source in enumerate(cells(notebook), start=1):
        start = time.perf_counter()
        exec(compile(source, f"{notebook.name}, cell {number}", "exec"), namespace)  # noqa: S102 - that is the task
        print(f"{notebook.name}, cell {number}: {time.perf_counter() - start:.1f} s", flush=True)


def main() -> None:
    """Run each notebook."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", type=Path, nargs="+", help=".ipynb files")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        run(arguments.notebooks[0])
        return
    for notebook in arguments.notebooks:
        subprocess.run([sys.executable, __file__, "--here", str(notebook)], check=True)


if __name__ == "__main__":
    main()
