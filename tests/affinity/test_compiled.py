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
