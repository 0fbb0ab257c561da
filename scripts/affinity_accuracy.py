"""Check the affinity products against float64 brute force: python scripts/affinity_accuracy.py [FOLDER] [--all-rows].

Images: photographs of scikit-image, also in grey, some of those found under FOLDER, and adversarial ones (constant,
noise, between levels, two colours, saturated), 224x224, as uint8 and as floats between the levels. Prints relative
L2 errors of W·1 and W·S and 1 - cosine of the gradient, of a thousand random rows; with --all-rows also of all
rows of the first photograph (minutes). Exits with 1 if a bound is exceeded: 0.5 % for colour, 1 % for colour and space,
cosine 0.9999.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from skimage import data
from torch import Tensor

from colocam.losses import CoLocLoss, CRFLoss
from colocam.losses.affinity import bilateral_product, color_product, dense_bilateral_product, dense_color_product

SIZE = 224
PHOTOGRAPHS = ("astronaut", "coffee", "chelsea", "rocket", "retina")
SIGMAS = (5.0, 15.0, 30.0)
SPACES = (50.0, 100.0)
ROWS = 1000
BOUND = {"colour": 0.005, "space": 0.01}
COSINE = 0.9999
# Lengths, in frames, of the sequences of the ragged case.
RAGGED = (1, 3, 2)


def main() -> None:
    """Print a line per check and the worst of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--all-rows", action="store_true")
    parser.add_argument("--photographs", type=int, default=5, help="how many of FOLDER")
    arguments = parser.parse_args()
    found = list(pictures(arguments.folder, arguments.photographs))
    worst: dict[str, list[float]] = {}
    for number, (name, picture) in enumerate(found):
        rows = None if arguments.all_rows and number == 0 else random_rows(SIZE * SIZE)
        for sigma in SIGMAS:
            report(worst, "colour", f"{name}, σ {sigma:g}", check_color(picture, sigma, rows))
        for sigma, sigma_xy in [(s, 100.0) for s in SIGMAS] + [(15.0, s) for s in SPACES[:1]]:
            report(worst, "space", f"{name}, σ {sigma:g}, {sigma_xy:g}", check_space(picture, sigma, sigma_xy, rows))
    report(worst, "colour", f"ragged {RAGGED}", check_ragged([picture for _, picture in found[: sum(RAGGED)]]))
    for kind, (error, turn) in worst.items():
        print(f"worst {kind}: error {100 * error:.3f} % (bound {100 * BOUND[kind]:g} %), 1-cos {turn:.1e}")
    if any(error > BOUND[kind] or turn > 1 - COSINE for kind, (error, turn) in worst.items()):
        sys.exit("a bound is passed")


def pictures(folder: Path | None, count: int) -> Iterator[tuple[str, Tensor]]:
    """Names and (3, SIZE, SIZE) pictures in 0–255."""
    for name in PHOTOGRAPHS:
        image = Image.fromarray(np.asarray(getattr(data, name)())[..., :3])
        yield name, resized(image)
        yield f"{name}, grey", resized(image.convert("L").convert("RGB"))
    files = sorted(folder.rglob("*.jpg")) if folder else []
    for path in files[:: max(1, len(files) // max(count, 1))][:count]:
        with Image.open(path) as image:
            yield path.name, resized(image.convert("RGB"))
    generator = torch.Generator().manual_seed(0)
    shape = (3, SIZE, SIZE)
    two = torch.rand((1, SIZE, SIZE), generator=generator) < 0.4
    first, second = torch.tensor([[90, 120, 33], [100, 130, 36]], dtype=torch.uint8)[..., None, None].unbind()
    coffee = resized(Image.fromarray(data.coffee())).float()
    yield "coffee, floats", (coffee + torch.rand(shape, generator=generator) - 0.5).clamp(0, 255)
    yield "constant", torch.tensor([101, 37, 222], dtype=torch.uint8)[:, None, None].expand(shape)
    yield "constant, float", torch.tensor([101.37, 37.5, 222.9])[:, None, None].expand(shape)
    yield "noise", torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    yield "noise, floats", torch.rand(shape, generator=generator) * 255
    yield "two colours", torch.where(two, first, second)
    yield "saturated", 255 * torch.randint(0, 2, shape, generator=generator, dtype=torch.uint8)
    yield "black", torch.zeros(shape, dtype=torch.uint8)
    yield "white", torch.full(shape, 255, dtype=torch.uint8)


def resized(image: Image.Image) -> Tensor:
    """(3, SIZE, SIZE) uint8."""
    array = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR))
    return torch.from_numpy(array.copy()).permute(2, 0, 1)


def blob() -> Tensor:
    """A realistic map (SIZE, SIZE): one object, soft at its border."""
    y, x = torch.meshgrid(*[torch.linspace(0, 1, SIZE)] * 2, indexing="ij")
    return torch.sigmoid(20 * (0.3 - torch.hypot(y - 0.5, x - 0.4)))


def random_rows(pixels: int) -> Tensor:
    """Indices of ROWS pixels."""
    return torch.randperm(pixels, generator=torch.Generator().manual_seed(1))[:ROWS]


def columns(maps: Tensor) -> Tensor:
    """1, S and S - ½ of maps (…,) as (…, 3)."""
    return torch.stack([torch.ones_like(maps), maps, maps - 0.5], dim=-1)


def compare(product: Tensor, gradient: Tensor, exact: Tensor) -> tuple[float, float, float]:
    """Relative errors of W·1 and W·S (N, 2), 1 - cosine of the gradient (N,), against W·[1, S, S - ½] (N, 3)."""
    one, s = ((product.double() - exact[:, :2]).norm(dim=0) / exact[:, :2].norm(dim=0)).tolist()
    return one, s, 1 - torch.cosine_similarity(gradient.double(), -exact[:, 2], dim=0).item()


def check_color(picture: Tensor, sigma: float, rows: Tensor | None) -> tuple[float, float, float]:
    """``color_product`` and the gradient of CoLocLoss, for which the frame is shown twice."""
    s, rgb = blob(), picture.flatten(1).T
    chosen = torch.arange(len(rgb)) if rows is None else rows
    exact = dense_color_product(rgb, columns(s.flatten()), sigma, chosen)
    maps = s[None].repeat(2, 1, 1).requires_grad_()
    CoLocLoss(sigma)(picture[None].repeat(2, 1, 1, 1), maps, torch.zeros(2, dtype=torch.int64)).backward()
    return compare(
        color_product(rgb, columns(s.flatten())[:, :2], sigma)[chosen], maps.grad[0].flatten()[chosen], exact
    )


def check_space(picture: Tensor, sigma: float, sigma_xy: float, rows: Tensor | None) -> tuple[float, float, float]:
    """``bilateral_product`` and the gradient of CRFLoss."""
    s = blob()
    chosen = torch.arange(s.numel()) if rows is None else rows
    values = columns(s).permute(2, 0, 1)[None]
    exact = dense_bilateral_product(picture[None], values, sigma, sigma_xy, chosen)[0].T
    maps = s[None].clone().requires_grad_()
    CRFLoss(sigma, sigma_xy)(picture[None], maps).backward()
    product = bilateral_product(picture[None], values[:, :2], sigma, sigma_xy)[0].flatten(1).T
    return compare(product[chosen], maps.grad[0].flatten()[chosen], exact)


def check_ragged(frames: list[Tensor]) -> tuple[float, float, float]:
    """Sequences of different lengths in one call: the worst of them."""
    ids = torch.tensor([number for number, length in enumerate(RAGGED) for _ in range(length)])
    rgb = torch.stack([frame.flatten(1).T for frame in frames]).float()
    maps = blob()[None].repeat(len(frames), 1, 1).requires_grad_()
    s = maps.detach().flatten(1)
    product = color_product(rgb, columns(s)[..., :2], sequences=ids[:, None].expand(s.shape))
    CoLocLoss(weighting="constant")(rgb.transpose(1, 2).unflatten(2, (SIZE, SIZE)), maps, ids).backward()
    results = []
    for number, length in enumerate(RAGGED):
        mine = ids == number
        colors, values = rgb[mine].flatten(0, 1), columns(s[mine]).flatten(0, 1)
        rows = random_rows(len(colors))
        # A sequence of one frame has no gradient: nothing to co-localise with.
        gradient = maps.grad[mine].flatten()[rows] if length > 1 else -values[rows, 2]
        exact = dense_color_product(colors, values, rows=rows)
        one, with_s, turn = compare(product[mine].flatten(0, 1)[rows], gradient, exact)
        results.append((one, with_s, turn if length > 1 else 0.0))
    return tuple(max(values) for values in zip(*results, strict=True))


def report(worst: dict[str, list[float]], kind: str, name: str, errors: tuple[float, float, float]) -> None:
    """Print a line and keep the worst."""
    one, s, turn = errors
    error, cosine = worst.setdefault(kind, [0.0, 0.0])
    worst[kind] = [max(error, one, s), max(cosine, turn)]
    print(f"{kind:6} {name:32} W1 {100 * one:.3f} %  WS {100 * s:.3f} %  1-cos {turn:.1e}", flush=True)


if __name__ == "__main__":
    main()
