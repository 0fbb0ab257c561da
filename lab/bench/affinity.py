"""Speed and accuracy of the pairwise losses, compared with the time to read the data and with other implementations.

Times of a case: ``ms`` is for the loss and its gradient by ``torch.autograd.grad``, launched from Python; on CUDA,
``graph_ms`` is for the same replayed as a CUDA graph, without the launches; ``floor_ms`` is for reading and writing
every value once. ``empty_autograd_ms``, once per run, is for a sum of 1,024 numbers: autograd alone.
"""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from colocam.losses import CoLocLoss, CRFLoss
from colocam.losses.affinity import bilateral_product, color_product, dense_bilateral_product, dense_color_product
from colocam.losses.affinity.engine import gaussian_sum
from colocam.utils.extras import install_extra
from lab import measuring as timing
from lab.measuring import SIGMA, SIGMA_XY, Kind, Step, conditions, keep, make_frames

SIZE = 224
# The defaults of the losses.
COLOR_TOL, SPACE_TOL = 9e-3, 1e-2
# Of one sequence of 64 frames.
PUBLISHED_MS = 81.0
# Pairs of pixels that an exact sum computes in one call; larger products are limited to a sample of the rows.
_PAIRS = 10**8
# Rows compared with float64.
_CHECKED = 200
TOLERANCES = (3e-2, 1e-2, 5e-3, 2e-3, 1e-3)

Row = dict[str, Any]


def run(device: str = "cpu", json_path: Path | None = None, *, quick: bool = False) -> Row:
    """Measure, print, and write to ``json_path``; ``quick`` omits long sequences and noise images."""
    where = torch.device(device)
    bandwidth = timing.copy_bandwidth(where)
    result: Row = {
        **conditions("CoLocLoss and CRFLoss, value and gradient over the maps, 224x224, default tolerance", where),
        "copy_gb_per_s": bandwidth / 1e9,
        "empty_autograd_ms": timing.empty_autograd_ms(where, _repeats(where)),
        "cases": [],
        "tolerance": [],
        "rivals": [],
    }
    print(
        f"{result['device']}, torch {torch.__version__}, copy {bandwidth / 1e9:.0f} GB/s, "
        f"empty autograd function {result['empty_autograd_ms']:.3f} ms, {result['date']}"
    )
    lengths = [4, 64] if quick else [1, 4, 16, 64, 256]
    kinds: list[Kind] = ["scene"] if quick else ["scene", "noise"]
    cases = [(f"color n={n}", n, [0] * n) for n in lengths]
    cases += [("color 8 x 4", 32, [i // 4 for i in range(32)]), ("crf 32 frames", 32, [])]
    for kind in kinds:
        for name, count, sequences in cases:
            row = _case(name, count, sequences, kind, where, bandwidth)
            result["cases"].append(row)
            print(_line(row), flush=True)
    for tol in TOLERANCES:
        row = {"tol": tol, **_errors(2, [0, 0], "scene", where, tol)}
        result["tolerance"].append(row)
        print(f"tol {tol:7.0e}: " + ", ".join(f"{k} {v:.5f}" for k, v in row.items() if k != "tol"), flush=True)
    for count, space in [(1, False)] if quick else [(1, False), (4, False), (16, False), (1, True)]:
        for row in _rivals(count, where, space=space):
            result["rivals"].append(row)
            print(line(row), flush=True)
    return keep(result, json_path)


def _rivals(count: int, device: torch.device, *, space: bool) -> list[Row]:
    """Our loss and independent products on the same frames: color of one sequence, or color and space of a frame."""
    frames, maps = (x.to(device) for x in make_frames(count, SIZE, "scene"))
    features = frames.transpose(0, 1).flatten(1).T.float() / SIGMA
    if space:
        y, x = torch.meshgrid(*[torch.arange(SIZE, device=device) / SIGMA_XY] * 2, indexing="ij")
        features = torch.cat([features, y.reshape(-1, 1), x.reshape(-1, 1)], dim=1)
    ours = timing.loss_step(count, SIZE, [] if space else [0] * count, "scene", device)
    name = "crf 1 frame" if space else f"color n={count}"
    return compare(name, features.contiguous(), maps.flatten(), ours, 3)


def _repeats(device: torch.device) -> int:
    return 100 if device.type == "cuda" else 7


def _case(name: str, count: int, sequences: list[int], kind: Kind, device: torch.device, bandwidth: float) -> Row:
    step = timing.loss_step(count, SIZE, sequences, kind, device)
    repeats = _repeats(device)
    pixels = count * SIZE * SIZE
    row: Row = {"name": name, "frames": kind, "count": count}
    row["ms"] = timing.median_ms(step, device, repeats)
    # Colors once, maps once, the gradient once.
    row["floor_ms"] = 1e3 * pixels * (3 + 4 + 4) / bandwidth
    if device.type == "cuda":
        row["graph_ms"] = timing.graph_ms(step, device, repeats)
        row["extra_mb"] = timing.peak_extra_bytes(step, device) / 1e6
    if count <= (4 if device.type == "cuda" else 0) and sequences:
        row["dense_ms"] = _dense_ms(count, kind, device)
    row |= {"published_ms": PUBLISHED_MS} if name == "color n=64" else {}
    return row | _errors(count, sequences, kind, device, COLOR_TOL if sequences else SPACE_TOL)


def _dense_ms(count: int, kind: Kind, device: torch.device) -> float:
    """The two products W·1 and W·S in float32 with the dense matrix, block by block."""
    frames, maps = (x.to(device) for x in make_frames(count, SIZE, kind))
    colors = frames.transpose(0, 1).flatten(1).T.float() / SIGMA
    values = torch.stack([torch.ones_like(maps), maps], dim=-1).flatten(0, 2)

    def dense(_: int) -> Tensor:
        blocks = torch.tensor_split(colors, max(1, len(colors) // 2048))
        return torch.cat([torch.exp(-0.5 * torch.cdist(block, colors).square()) @ values for block in blocks])

    return timing.median_ms(dense, device, 3)


def _errors(count: int, sequences: list[int], kind: Kind, device: torch.device, tol: float) -> Row:
    """Relative L2 errors of W·1 and W·S and the cosine of the gradient, on pixels of the first sequence or frame."""
    mine = sequences.count(0) if sequences else 1
    if mine < 1 or (device.type == "cpu" and mine > 16):
        return {}
    frames, maps = (x[:mine].to(device) for x in make_frames(count, SIZE, kind))
    pixels = mine * SIZE * SIZE
    rows = torch.randperm(pixels, generator=torch.Generator().manual_seed(1))[: 1000 if pixels < 10**6 else 200]
    rows = rows.to(device)
    if sequences:
        colors = frames.transpose(0, 1).flatten(1).T
        values = torch.stack([torch.ones_like(maps), maps, maps - 0.5], dim=-1).flatten(0, 2)
        product = color_product(colors, values[:, :2], SIGMA, tol)[rows]
        exact = dense_color_product(colors, values, SIGMA, rows)
    else:
        values = torch.stack([torch.ones_like(maps), maps, maps - 0.5], dim=1)
        whole = bilateral_product(frames, values[:, :2], SIGMA, SIGMA_XY, tol)
        product = whole[0].flatten(1)[:, rows].T
        exact = dense_bilateral_product(frames, values, SIGMA, SIGMA_XY, rows)[0].T
    errors = ((product - exact[:, :2]).norm(dim=0) / exact[:, :2].norm(dim=0)).tolist()
    gradient = _gradient(frames, maps, crf=not sequences, tol=tol).flatten()[rows].double()
    cosine = torch.cosine_similarity(gradient, -exact[:, 2], dim=0).item()
    return {"error_W1": errors[0], "error_WS": errors[1], "gradient_1-cos": 1 - cosine}


def _gradient(frames: Tensor, maps: Tensor, *, crf: bool, tol: float) -> Tensor:
    """Gradient of the loss; a single frame is used twice, since a sequence has at least two."""
    s = maps.clone().requires_grad_()
    if crf:
        return torch.autograd.grad(CRFLoss(SIGMA, SIGMA_XY, tol)(frames, s), s)[0]
    twice = 2 if len(maps) == 1 else 1
    ids = torch.zeros(twice * len(maps), dtype=torch.int64, device=maps.device)
    loss = CoLocLoss(SIGMA, tol=tol)(frames.repeat(twice, 1, 1, 1), s.repeat(twice, 1, 1), ids, 1)
    return torch.autograd.grad(loss, s)[0]


def _line(row: Row) -> str:
    parts = [f"{row['name']:14} {row['frames']:6} {row['ms']:9.3f} ms", f"floor {row['floor_ms']:.3f}"]
    for key, text in (("graph_ms", "graph {:.3f}"), ("dense_ms", "dense {:.0f}"), ("extra_mb", "extra {:.0f} MB")):
        if key in row:
            parts.append(text.format(row[key]))
    if "error_W1" in row:
        parts.append(
            f"W1 {100 * row['error_W1']:.3f} % WS {100 * row['error_WS']:.3f} % 1-cos {row['gradient_1-cos']:.1e}"
        )
    return ", ".join(parts)


# Independent implementations of the same products follow, timed in turn with ours if they are installed. Only their
# products are timed, without the loss and without the second product that autograd would need. This favors them.


class Prepared(NamedTuple):
    """A product that is ready to be timed.

    Attributes:
        step: computes W·1 and W·S, (len(rows), 2).
        rows: pixels whose results are computed.
    """

    step: Step
    rows: Tensor


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
    return Prepared(lambda _: formula(queries, features, values), rows)


def permutohedral_lattice(features: Tensor, maps: Tensor) -> Prepared:
    """DenseCRF's lattice on one CPU core: one step of its inference computes W·S⁰ and W·S¹."""
    from pydensecrf import densecrf, eigen  # noqa: PLC0415

    coordinates = np.ascontiguousarray(features.T.cpu().numpy())
    foreground = maps.cpu().clamp(1e-6, 1 - 1e-6)
    unary = -torch.stack([1 - foreground, foreground]).log().numpy()

    def step(_: int) -> Tensor:
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
            ours_ms, rival_ms = timing.in_turn_ms([ours, rival.step], features.device, repeats)
            share = len(rival.rows) / len(features)
            row |= {"ours_ms": ours_ms, "ms": rival_ms / share, "share": share, "ratio": rival_ms / share / ours_ms}
            row |= _rival_errors(rival, features, maps)
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


def _rival_errors(rival: Prepared, features: Tensor, maps: Tensor) -> Row:
    """Relative L2 errors of W·1 and W·S, and of W·S after the factor that fits it best."""
    some = _random_rows(len(rival.rows), _CHECKED)
    found = rival.step(0).cpu()[some].double()
    checked = rival.rows.cpu()[some].to(features.device)
    exact = gaussian_sum(features, torch.stack([torch.ones_like(maps), maps], dim=1), checked).cpu()
    norms = exact.norm(dim=0)
    raw = ((found - exact).norm(dim=0) / norms).tolist()
    factor = (found[:, 1] @ exact[:, 1]) / found[:, 1].square().sum()
    scaled = (factor * found[:, 1] - exact[:, 1]).norm() / norms[1]
    return {"error_W1": raw[0], "error_WS": raw[1], "error_WS_scaled": scaled.item()}


def _random_rows(total: int, count: int) -> Tensor:
    return torch.randperm(total, generator=torch.Generator().manual_seed(2))[:count]
