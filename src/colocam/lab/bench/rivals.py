"""Independent implementations of the same products, timed in turn with ours if they are installed.

Only their products are timed, without the loss and without the second product that autograd would need. This favours
them.
"""

import importlib.metadata
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from colocam.lab.measuring import timing
from colocam.losses.affinity.reference import gaussian_sum
from colocam.utils.extras import install_extra

# Pairs of pixels that an exact sum computes in one call; larger products are limited to a sample of the rows.
_PAIRS = 10**8
# Rows compared with float64.
_CHECKED = 200

Row = dict[str, Any]


class Prepared(NamedTuple):
    """A product that is ready to be timed.

    Attributes:
        step: computes W·1 and W·S, (len(rows), 2).
        rows: pixels whose results are computed.
    """

    step: Callable[[], Tensor]
    rows: Tensor

    def timed(self, _: int) -> Tensor:
        """``step`` as ``timing`` calls it."""
        return self.step()


def streaming_sum(features: Tensor, maps: Tensor) -> Prepared:
    """KeOps: the exact sum over all pairs in float32, without storing the matrix. Features (N, D), maps (N,)."""
    import pykeops  # noqa: PLC0415
    from pykeops.torch import Genred  # noqa: PLC0415

    pykeops.set_verbose(False)
    size = features.shape[1]
    formula = Genred(
        "Exp(-SqDist(x, y) / IntCst(2)) * v", [f"x = Vi({size})", f"y = Vj({size})", "v = Vj(2)"], "Sum", axis=1
    )
    values = torch.stack([torch.ones_like(maps), maps], dim=1)
    rows = _random_rows(len(features), max(1, _PAIRS // len(features))).to(features.device)
    queries = features[rows].contiguous()
    return Prepared(lambda: formula(queries, features, values), rows)


def permutohedral_lattice(features: Tensor, maps: Tensor) -> Prepared:
    """DenseCRF's lattice on one CPU core: one step of its inference computes W·S⁰ and W·S¹."""
    from pydensecrf import densecrf, eigen  # noqa: PLC0415

    coordinates = np.ascontiguousarray(features.T.cpu().numpy())
    foreground = maps.cpu().clamp(1e-6, 1 - 1e-6)
    unary = -torch.stack([1 - foreground, foreground]).log().numpy()

    def step() -> Tensor:
        crf = densecrf.DenseCRF(len(maps), 2)
        crf.setUnaryEnergy(unary)
        crf.addPairwiseEnergy(coordinates, 1.0, normalization=densecrf.NO_NORMALIZATION)
        state, total, _ = crf.startInference()
        # The matrix that startInference returns loses its shape once it is filled.
        messages = eigen.matrixXf(np.zeros_like(unary))
        crf.stepInference(state, total, messages)
        # The Potts compatibility negates the product.
        background, foreground = torch.from_numpy(-np.array(messages))
        return torch.stack([background + foreground, foreground], dim=1)

    return Prepared(step, torch.arange(len(maps)))


# Package name → what it computes, and the function that prepares it.
RIVALS: dict[str, tuple[str, Callable[[Tensor, Tensor], Prepared]]] = {
    "pykeops": ("exact streaming sum", streaming_sum),
    "pydensecrf2": ("permutohedral lattice", permutohedral_lattice),
}


def compare(name: str, features: Tensor, maps: Tensor, ours: Callable[[int], object], repeats: int) -> list[Row]:
    """Time every rival in turn with ``ours`` and measure its errors against float64.

    Args:
        name: of the case.
        features: (N, D) coordinates over their σ.
        maps: S, (N,).
        ours: computes value and gradient of the loss on the same pixels.
        repeats: calls of each.

    Returns:
        One row per rival; the row of a missing or failing one has the reason.
    """
    rows = []
    for package, (kind, prepare) in RIVALS.items():
        row: Row = {"name": name, "rival": package, "kind": kind}
        try:
            row["version"] = importlib.metadata.version(package)
            rival = prepare(features, maps)
            ours_ms, rival_ms = timing.in_turn_ms([ours, rival.timed], features.device, repeats)
            share = len(rival.rows) / len(features)
            row |= {"ours_ms": ours_ms, "ms": rival_ms / share, "share": share, "ratio": rival_ms / share / ours_ms}
            row |= _errors(rival, features, maps)
        except importlib.metadata.PackageNotFoundError:
            row["missing"] = f"not installed: {install_extra('bench')}"
        except Exception as error:  # noqa: BLE001  they compile at install or run time; their failure must not end our bench
            row["missing"] = f"{type(error).__name__}: {error}".splitlines()[0]
        rows.append(row)
    return rows


def line(row: Row) -> str:
    """A row of ``compare`` as printed."""
    start = f"{row['name']:14} {row['rival']} ({row['kind']})"
    if "missing" in row:
        return f"{start}: {row['missing']}"
    share = "" if row["share"] == 1 else f", {100 * row['share']:.2g} % of the rows, scaled"
    return (
        f"{start} {row['ms']:.1f} ms{share}; ours {row['ours_ms']:.1f} ms; ratio {row['ratio']:.1f}; "
        f"W1 {100 * row['error_W1']:.3f} % WS {100 * row['error_WS']:.3f} %, "
        f"{100 * row['error_WS_scaled']:.3f} % after the best factor"
    )


def _errors(rival: Prepared, features: Tensor, maps: Tensor) -> Row:
    """Relative L2 errors of W·1 and W·S, and of W·S after the factor that fits it best."""
    some = _random_rows(len(rival.rows), _CHECKED)
    found = rival.step().cpu()[some].double()
    checked = rival.rows.cpu()[some].to(features.device)
    exact = gaussian_sum(features, torch.stack([torch.ones_like(maps), maps], dim=1), checked).cpu()
    norms = exact.norm(dim=0)
    raw = ((found - exact).norm(dim=0) / norms).tolist()
    factor = (found[:, 1] @ exact[:, 1]) / found[:, 1].square().sum()
    scaled = (factor * found[:, 1] - exact[:, 1]).norm() / norms[1]
    return {"error_W1": raw[0], "error_WS": raw[1], "error_WS_scaled": scaled.item()}


def _random_rows(total: int, count: int) -> Tensor:
    return torch.randperm(total, generator=torch.Generator().manual_seed(2))[:count]
