import os
import subprocess
import sys

import numpy as np
import pytest

from colocam.affinity import cpu_kernels as compiled


@pytest.mark.parametrize(
    ("terms", "count", "width"), [(1, 1, 3), (4, 4, 8), (7, 5, 9), (9, 8, 1), (3, 10, 33), (8, 3, 0)]
)
def test_combine_adds_the_product_whatever_is_left_over_from_fours(terms, count, width):
    generator = np.random.default_rng(0)
    coefficients, rows = generator.normal(size=(terms, count)), generator.normal(size=(terms, width))
    out = generator.normal(size=(count, width))
    expected = out + coefficients.T @ rows
    compiled.combine(coefficients, rows, out)
    np.testing.assert_allclose(out, expected, atol=1e-12)


# The kernels' file by itself: its package imports torch, which takes longer than the rest.
SPECTRUM = """
import sys
sys.modules["colocam.native"] = None  # Numba compiles, also where the functions exist in C
from importlib.util import module_from_spec, spec_from_file_location
import numpy as np
spec = spec_from_file_location("cpu_kernels", sys.argv[1])
compiled = module_from_spec(spec)
sys.modules["cpu_kernels"] = compiled
spec.loader.exec_module(compiled)
cells, rank = 13, 11
generator = np.random.default_rng(0)
moments = generator.normal(size=(cells**3, 2, 4)).astype(np.float32)
factor = generator.normal(size=(2, cells, rank)).astype(np.float32)
rows, blue = np.arange(0, cells**3 + 1, cells, dtype=np.int32), np.tile(np.arange(cells, dtype=np.int32), cells**2)
spectrum = np.zeros((rank, rank * 2 * rank), np.float32)
compiled.analyse(moments, rows, blue, factor, 0, cells, spectrum)
print(sum(compiled.analyse.stats.cache_hits.values()), spectrum.tobytes().hex())
"""


def test_the_process_that_compiles_computes_the_same_bits_as_those_after_it(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SPECTRUM, compiled.__file__]
    first, second = (subprocess.check_output(command, env=environment, text=True).split() for _ in range(2))
    assert (first[0], second[0]) == ("0", "1")
    assert first[1] == second[1]
