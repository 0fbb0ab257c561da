"""Colours of a video, sampled for each video, so that no colour predicts a class."""

from dataclasses import dataclass

import numpy as np

from colocam.lab.world.textures import Array, as_float


@dataclass(frozen=True, slots=True)
class Palette:
    """RGB in 0–1: the object's base, light accent and dark trim (3, 3); the background's (5, 3), dark to light."""

    object: Array
    background: Array


def oklch(lightness: float, chroma: float, hue: float) -> Array:
    """RGB (3,) in 0–1 (gamma-coded sRGB) of a colour in OKLCh; ``hue`` in degrees; clipped to the gamut."""
    a, b = chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))
    lms = np.array([lightness, a, b]) @ _OKLAB_TO_LMS
    linear = np.clip(lms**3 @ _LMS_TO_RGB, 0, 1)
    return as_float(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055))


_OKLAB_TO_LMS = np.array(
    [[1, 1, 1], [0.3963377774, -0.1055613458, -0.0894841775], [0.2158037573, -0.0638541728, -1.2914855480]]
)
_LMS_TO_RGB = np.array(
    [
        [4.0767416621, -1.2684380046, -0.0041960863],
        [-3.3077115913, 2.6097574011, -0.7034186147],
        [0.2309699292, -0.3413193965, 1.7076147010],
    ]
)


def object_colours(rng: np.random.Generator, hue: float) -> Array:
    """Base, light accent and dark trim (3, 3) of one thing, of related hues."""
    chroma, turn = rng.uniform(0.08, 0.19), rng.choice([0.0, 40.0, -40.0, 180.0]) + rng.uniform(-12, 12)
    return np.stack(
        [
            oklch(rng.uniform(0.5, 0.72), chroma, hue),
            oklch(rng.uniform(0.84, 0.95), rng.uniform(0.02, 0.1), hue + turn),
            oklch(rng.uniform(0.2, 0.34), rng.uniform(0.03, 0.09), hue + rng.uniform(-15, 15)),
        ]
    )


def draw_palette(rng: np.random.Generator, *, near: bool) -> Palette:
    """Sample the colours of a video; with ``near`` the background is of about the object's base colour."""
    hue = rng.uniform(0, 360)
    thing = object_colours(rng, hue)
    candidates = [
        _background(rng, hue + rng.normal(0, 14), rng.uniform(0.06, 0.16))
        if near
        else _background(rng, hue + rng.uniform(75, 285), rng.uniform(0.02, 0.1))
        for _ in range(12)
    ]
    distance = [float(np.linalg.norm(colours - thing[0], axis=1).min()) for colours in candidates]
    return Palette(thing, candidates[int(np.argmin(distance) if near else np.argmax(distance))])


def _background(rng: np.random.Generator, hue: float, chroma: float) -> Array:
    """Five related colours (5, 3), dark to light."""
    low = rng.uniform(0.22, 0.5)
    levels, drift = np.linspace(low, low + rng.uniform(0.25, 0.42), 5), np.linspace(-0.5, 0.5, 5) * rng.uniform(-40, 40)
    return np.stack(
        [oklch(level, chroma * rng.uniform(0.7, 1.2), hue + turn) for level, turn in zip(levels, drift, strict=True)]
    )


def ramp(colours: Array, value: Array) -> Array:
    """Colours (h, w, 3) found at ``value`` (h, w) in 0–1 along the list ``colours`` (k, 3), linearly between them."""
    place = np.clip(value, 0, 1) * (len(colours) - 1)
    index = np.minimum(place.astype(np.intp), len(colours) - 2)
    share = (place - index)[..., None]
    return as_float(colours[index] * (1 - share) + colours[index + 1] * share)
