"""The six classes and the things of no class.

A class is a silhouette with its textures, never a colour. Each has a large body, whose texture is soft, and a small
part with a crisp texture that no other class has: a classifier finds the part, and its CAM tends to leave out the
body. Things of no class share the kinds of outline (ovals, diamonds, boxes) but none of the textures of the parts.
"""

from collections.abc import Callable

import numpy as np

from colocam.data.world.figures import Figure, Part, ellipse, limb, polygon, smooth, star
from colocam.data.world.textures import (
    Pattern,
    bricks,
    checks,
    crosses,
    dashes,
    dots,
    lattice,
    plaid,
    plain,
    puffs,
    reeds,
    rings,
    scales,
    spiral,
    spokes,
    stripes,
    waves,
    zigzag,
)

Builder = Callable[[np.random.Generator], Figure]

SOFT = 0.45
"""Contrast of a body's texture."""


def beetle(rng: np.random.Generator) -> Figure:
    """Seen from above: a dotted oval on six legs, a chequered head with feelers."""
    plump = rng.uniform(0.9, 1.1)
    rate, legs = rng.uniform(1.2, 2.2), []
    for index, x in enumerate((-0.42, 0.02, 0.4)):
        for side in (-1, 1):
            foot = x + (-0.3, -0.05, 0.28)[index]
            bar = limb([(x, 0.3 * side), ((x + foot) / 2 + 0.04, 0.62 * side), (foot, 0.82 * side)], 0.12, 0.07)
            legs.append(
                Part(bar, base=2, pivot=(x, 0.3 * side), swing=14, rate=rate, phase=0.5 * ((index + (side > 0)) % 2))
            )
    feelers = [
        Part(
            limb([(0.98, 0.1 * side), (1.16, 0.24 * side), (1.22, 0.44 * side)], 0.07, 0.05),
            base=2,
            pivot=(0.98, 0.1 * side),
            swing=12,
            rate=rate / 2,
            phase=0.25,
        )
        for side in (-1, 1)
    ]
    return Figure(
        (
            *legs,
            *feelers,
            Part(ellipse(0.86, 0, 0.26, 0.27), checks(rng.uniform(0.17, 0.21)), base=0, accent=1),
            Part(ellipse(0.52, 0, 0.26, 0.42 * plump), plain(), base=2),
            Part(ellipse(-0.15, 0, 0.78, 0.55 * plump), dots(rng.uniform(0.36, 0.44), 0.27), contrast=SOFT),
            Part(polygon((-0.92, -0.018), (0.5, -0.018), (0.5, 0.018), (-0.92, 0.018)), base=2),
        )
    )


def fish(rng: np.random.Generator) -> Figure:
    """From the side: a scaly lens with fins, a wagging tail, rings round the eye."""
    deep = rng.uniform(0.42, 0.54)
    rate = rng.uniform(1.5, 2.5)
    body = smooth((-0.72, -0.06), (-0.3, -0.75 * deep), (0.25, -deep), (0.75, -0.6 * deep), (1.02, 0.02),
                  (0.75, 0.6 * deep), (0.25, 0.95 * deep), (-0.3, 0.75 * deep), (-0.72, 0.06))  # fmt: skip
    tail = smooth((-0.62, 0), (-0.95, -0.28), (-1.25, -0.46), (-1.12, 0), (-1.25, 0.46), (-0.95, 0.28))
    back = smooth((-0.35, -0.55 * deep), (-0.2, -deep - 0.16), (0.25, -deep - 0.2), (0.45, -0.8 * deep))
    fin = smooth((0.2, 0.12), (-0.08, 0.34), (-0.2, 0.3), (-0.02, 0.1))
    return Figure(
        (
            Part(tail, stripes(0.16, 90), base=2, accent=0, contrast=0.8, pivot=(-0.66, 0), swing=16, rate=rate),
            Part(back, stripes(0.14, 20), base=2, accent=0, contrast=0.8),
            Part(body, scales(rng.uniform(0.24, 0.3)), contrast=SOFT),
            Part(ellipse(0.66, -0.06, 0.19, 0.19), rings(0.125, (0.66, -0.06), 0.52), base=1, accent=0),
            Part(fin, plain(), base=2, pivot=(0.2, 0.14), swing=18, rate=rate, phase=0.3),
        )
    )


def kite(rng: np.random.Generator) -> Figure:
    """A diamond with soft chevrons, a spar, and a swinging tail of bows with thin stripes."""
    waist = rng.uniform(-0.3, -0.15)
    rate, parts = rng.uniform(0.7, 1.2), []
    joints = [(0.02, 0.86), (0.1, 1.1), (0.02, 1.36), (0.1, 1.6)]
    parts.append(Part(limb([(0, 0.7), *joints], 0.05), base=2, pivot=(0, 0.75), swing=12, rate=rate))
    for x, y in joints[1:]:
        bow = polygon(
            (x, y), (x - 0.24, y - 0.13), (x - 0.24, y + 0.13), (x, y), (x + 0.24, y - 0.13), (x + 0.24, y + 0.13)
        )
        parts.append(Part(bow, stripes(0.105, 0, 0.5), base=0, accent=1, pivot=(0, 0.75), swing=12, rate=rate))
    sail = polygon((0, -0.95), (0.68, waist), (0, 0.86), (-0.68, waist))
    return Figure(
        (
            *parts,
            Part(sail, zigzag(rng.uniform(0.36, 0.44), 0.5), contrast=SOFT, squeeze=0.05, rate=2 * rate),
            Part(limb([(0, -0.95), (0, -0.1), (0, 0.86)], 0.05), base=2),
            Part(limb([(-0.68, waist), (0, waist - 0.03), (0.68, waist)], 0.05), base=2),
        )
    )


def rocket(rng: np.random.Generator) -> Figure:
    """Upright: a tube with soft bands, a nose with a star of sectors, fins, a flickering flame."""
    width = rng.uniform(0.32, 0.4)
    tube = smooth((0, -1.0), (0.62 * width, -0.72), (width, -0.3), (width, 0.35), (0.72 * width, 0.72),
                  (-0.72 * width, 0.72), (-width, 0.35), (-width, -0.3), (-0.62 * width, -0.72))  # fmt: skip
    fins = [
        Part(polygon((side * 0.75 * width, 0.2), (side * (width + 0.32), 0.62), (side * (width + 0.3), 0.94),
                     (side * 0.6 * width, 0.7)), base=2)
        for side in (-1, 1)
    ]  # fmt: skip
    flame = smooth((-0.2, 0.7), (0.2, 0.7), (0.17, 0.95), (0, 1.28), (-0.17, 0.95))
    port = (0.0, -0.32)
    return Figure(
        (
            Part(
                flame,
                zigzag(0.2, 0.4),
                base=1,
                accent=2,
                contrast=0.6,
                pivot=(0, 0.7),
                squeeze=0.45,
                rate=rng.uniform(3, 4.5),
            ),
            *fins,
            Part(tube, stripes(rng.uniform(0.38, 0.46), 90), contrast=SOFT),
            Part(ellipse(*port, 0.24, 0.24), spokes(6, port), base=1, accent=2),
            Part(limb([(0, 0.3), (0, 0.6), (0, 0.86)], 0.09), base=2),
        )
    )


def snail(rng: np.random.Generator) -> Figure:
    """From the side: a long foot with a soft speckle, a coiled shell, two eyes on stalks."""
    sway = rng.uniform(0.8, 1.4)
    foot = smooth((-1.15, 0.6), (-0.5, 0.36), (0.3, 0.38), (0.6, 0.1), (0.78, -0.14), (1.02, -0.1), (1.06, 0.14),
                  (0.92, 0.46), (0.6, 0.62), (-0.3, 0.64))  # fmt: skip
    shell = smooth((-0.72, 0.42), (-0.84, 0), (-0.66, -0.42), (-0.2, -0.62), (0.26, -0.42), (0.42, 0.02), (0.28, 0.42))
    stalks: list[Part] = []
    for x, phase in ((0.82, 0.0), (0.98, 0.35)):
        stalk = limb([(x, -0.06), (x + 0.05, -0.28), (x + 0.13, -0.46)], 0.08, 0.06)
        stalks.append(Part(stalk, base=2, pivot=(x, -0.06), swing=10, rate=sway, phase=phase))
        stalks.append(
            Part(ellipse(x + 0.14, -0.5, 0.075, 0.075), base=1, pivot=(x, -0.06), swing=10, rate=sway, phase=phase)
        )
    return Figure(
        (
            *stalks,
            Part(foot, dots(rng.uniform(0.15, 0.19), 0.2), base=0, accent=2, contrast=0.5),
            Part(shell, rings(0.62, (-0.2, 0.0), 0.5), contrast=0.2, base=0),
            Part(ellipse(-0.18, -0.02, 0.36, 0.36), spiral(rng.uniform(0.15, 0.18), (-0.18, -0.02)), base=0, accent=1),
        )
    )


def truck(rng: np.random.Generator) -> Figure:
    """From the side: a long box with soft slanted bands, a cab with a window, spoked wheels."""
    tall = rng.uniform(0.62, 0.78)
    spin = float(rng.choice([-1, 1])) * rng.uniform(0.5, 1.3)
    wheels: list[Part] = []
    for x in (-0.72, 0.68):
        wheels.append(Part(ellipse(x, 0.5, 0.25, 0.25), base=2))
        wheels.append(
            Part(ellipse(x, 0.5, 0.19, 0.19), spokes(4, (x, 0.5), 0.06), base=1, accent=0, pivot=(x, 0.5), spin=spin)
        )
    cab = smooth((0.42, 0.42), (0.42, -0.16), (0.5, -0.26), (0.82, -0.26), (0.98, 0.06), (1.12, 0.14), (1.14, 0.42))
    return Figure(
        (
            Part(polygon((-1.08, 0.3), (1.1, 0.3), (1.1, 0.46), (-1.08, 0.46)), base=2),
            Part(polygon((-1.12, 0.36), (-1.12, 0.36 - tall - 0.2), (0.36, 0.36 - tall - 0.2), (0.36, 0.36)),
                 stripes(rng.uniform(0.42, 0.52), 35), contrast=SOFT),
            Part(cab, plain(), base=0),
            Part(polygon((0.58, -0.16), (0.78, -0.16), (0.9, 0.08), (0.58, 0.08)), base=1),
            *wheels,
        )
    )  # fmt: skip


CLASSES: dict[str, Builder] = {
    "beetle": beetle,
    "fish": fish,
    "kite": kite,
    "rocket": rocket,
    "snail": snail,
    "truck": truck,
}

CONTEXTS: dict[str, Callable[[float], Pattern]] = {
    "beetle": reeds,
    "fish": waves,
    "kite": puffs,
    "rocket": lattice,
    "snail": bricks,
    "truck": dashes,
}
"""What is often about where a class is, and seldom elsewhere: a texture of the background, by period in pixels."""


def distractor(rng: np.random.Generator) -> Figure:
    """A thing of no class: one or two simple outlines."""
    outlines = (
        ellipse(0, 0, 0.7, 0.48),
        polygon((0, -0.9), (0.6, 0), (0, 0.9), (-0.6, 0)),
        polygon((-0.8, -0.5), (0.8, -0.5), (0.8, 0.5), (-0.8, 0.5)),
        star(5, 0.45),
        star(8, 0.7),
        polygon((-0.3, -0.8), (0.3, -0.8), (0.3, -0.3), (0.8, -0.3), (0.8, 0.3), (0.3, 0.3), (0.3, 0.8), (-0.3, 0.8),
                (-0.3, 0.3), (-0.8, 0.3), (-0.8, -0.3), (-0.3, -0.3)),
        smooth(*(tuple(point) for point in star(3, 0.5) * rng.uniform(0.7, 1.2, (6, 1)))),
        smooth(*(tuple(point) for point in star(4, 0.8) * rng.uniform(0.6, 1.3, (8, 1)))),
        polygon((-0.6, 0.6), (0, -0.7), (0.6, 0.6)),
    )  # fmt: skip
    patterns = (
        plain(), plaid(rng.uniform(0.3, 0.5)), crosses(rng.uniform(0.3, 0.5)), waves(rng.uniform(0.25, 0.4)),
        stripes(rng.uniform(0.3, 0.6), rng.uniform(0, 180)), dots(rng.uniform(0.3, 0.5), 0.3),
    )  # fmt: skip
    body = outlines[int(rng.integers(len(outlines)))]
    parts = [Part(body, patterns[int(rng.integers(len(patterns)))], contrast=rng.uniform(0.4, 1.0))]
    if rng.random() < 0.5:
        x, y, radius = rng.uniform(-0.35, 0.35), rng.uniform(-0.35, 0.35), rng.uniform(0.16, 0.3)
        parts.append(
            Part(ellipse(x, y, radius, radius), base=int(rng.integers(1, 3)), swing=10, rate=rng.uniform(0.5, 2))
        )
    return Figure(tuple(parts))
