"""Build the loops in C with the package, and note the commit that it was built from.

Without a C compiler the loops are left out, and NumPy or OpenCV compute the same, more slowly (src/colocam/native).
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

NATIVE = Path("src", "colocam", "native")
# No fused operations, so that results do not depend on who compiled them.
FLAGS = ["-O3", "-ffp-contract=off", "-fno-math-errno"]

kernels = Extension(
    "colocam.native.kernels",
    [str(NATIVE / "kernels.c")],
    depends=sorted(map(str, NATIVE.glob("*.h"))),
    extra_compile_args=FLAGS,
    py_limited_api=True,
    optional=True,
)
COMMIT = Path("src", "colocam", "commit.txt")
"""In the source archive, which has no history, and in the wheel; ``colocam --version`` prints it."""


def note_commit(target: Path) -> None:
    """Write the commit of this clone, or of the source archive, to ``target``; nothing where there is none."""
    if COMMIT.exists():
        target.write_text(COMMIT.read_text(encoding="utf-8"), encoding="utf-8")
        return
    try:
        asked = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
        found = subprocess.run(asked, capture_output=True, text=True, check=True)  # noqa: S603 - fixed words
    except (OSError, subprocess.CalledProcessError):
        return
    target.write_text(found.stdout, encoding="utf-8")


class BuildPackage(build_py):
    """With the commit; an editable installation asks its clone instead."""

    def run(self) -> None:
        """Build."""
        super().run()
        if not self.editable_mode:
            note_commit(Path(self.build_lib, "colocam", COMMIT.name))


class BuildArchive(sdist):
    """With the commit."""

    def make_release_tree(self, base_dir: str, files: Sequence[str]) -> None:
        """Copy the files."""
        super().make_release_tree(base_dir, list(files))
        note_commit(Path(base_dir) / COMMIT)


setup(
    cmdclass={"build_py": BuildPackage, "sdist": BuildArchive},
    ext_modules=[kernels],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
