import numpy as np
import pytest

from colocam.losses.affinity.basis import color_basis, space_basis


@pytest.mark.parametrize(("sigma", "tol"), [(15.0, 5e-3), (15.0, 1e-2), (40.0, 1e-3)])
def test_factor_reproduces_the_gaussian_along_one_axis(sigma, tol):
    basis = color_basis(sigma, tol)
    # Centres of cells have offset 0: there φ is the scale of the constant alone, whose cube root belongs to one axis.
    at_centres = basis.scale[0] ** (1 / 3) * basis.factor[0]
    centres = (np.arange(basis.cells) + 0.5) / basis.per_level
    gaussian = np.exp(-((centres[:, None] - centres) ** 2) / (2 * sigma**2))
    assert abs(at_centres @ at_centres.T - gaussian).max() <= tol


def test_shifted_cells_hold_every_level():
    for basis in (color_basis(15.0, 5e-3), color_basis(1e4, 5e-3), color_basis(0.5, 5e-3)):
        for shift in basis.shifts:
            first, last = (level * basis.per_level + shift for level in (0, 256))
            assert first >= 0
            assert last <= basis.cells
    assert not any(color_basis(0.5, 5e-3).shifts)  # a cell for each level: all colours in the centres


def test_matrices_are_the_kernel_of_the_four_moments():
    basis = color_basis(60.0, 5e-2)
    n, rank = basis.cells, basis.rank
    over_b, over_g, over_r = basis.matrices
    kernels = np.einsum("pxa,qya->pqxy", basis.factor, basis.factor)
    generator = np.random.default_rng(0)
    moments = generator.normal(size=(n, n, n, 4))
    x = over_b @ moments.reshape(n * n, 4 * n, 1)
    x = over_g @ x.reshape(n, 3 * n, rank)
    x = over_r @ x.reshape(1, 2 * n, rank * rank)
    x = over_g.T @ x.reshape(n, 2 * rank, rank)
    found = (over_b.T @ x.reshape(n * n, 3 * rank, 1)).reshape(n, n, n, 4)
    expected = np.zeros_like(moments)
    for i in range(4):
        for j in range(4):
            r, g, b = (kernels[int(i == axis), int(j == axis)] for axis in (1, 2, 3))
            expected[..., i] += np.einsum("rs,gh,bc,shc->rgb", r, g, b, moments[..., j], optimize=True)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize(("height", "width", "sigma"), [(20, 31, 10.0), (16, 16, 100.0), (24, 8, 3.0)])
def test_space_basis_within_its_tolerance(height, width, sigma):
    psi = space_basis(height, width, sigma, 1e-2).reshape(-1, height * width)
    y, x = np.divmod(np.arange(height * width), width)
    exact = np.exp(-((y[:, None] - y) ** 2 + (x[:, None] - x) ** 2) / (2 * sigma**2))
    assert np.linalg.norm(psi.T @ psi - exact) <= 1e-2 * np.linalg.norm(exact)
    assert len(space_basis(height, width, sigma, 1e-1)) <= len(psi) < height * width
