"""Build the loops in C with the package.

Without a C compiler they are left out, and NumPy or OpenCV compute the same, more slowly (src/colocam/native).
"""

import sys
from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("src", "colocam", "native")
# No fused operations, so that results do not depend on who compiled them.
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-fno-math-errno"]

kernels = Extension(
    "colocam.native.kernels",
    [str(NATIVE / "kernels.c")],
    depends=sorted(map(str, NATIVE.glob("*.h"))),
    extra_compile_args=FLAGS,
    py_limited_api=True,
    optional=True,
)
setup(ext_modules=[kernels], options={"bdist_wheel": {"py_limited_api": "cp311"}})
