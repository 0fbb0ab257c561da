"""The product on the CPU: sequences, or shares of one sequence, side by side on all cores."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from colocam.affinity.basis import ColorBasis
from colocam.affinity.cpu_kernels import Array
from colocam.affinity.sequence import ColorSequence, each
from colocam.utils.device import cores


def _for_each_group(
    rgb: Tensor, values: Tensor, out: Tensor, group: Tensor, psi: Tensor | None, basis: ColorBasis,
    function: Callable[[ColorSequence, int, Array, Array], None],
) -> None:  # fmt: skip
    """Call function(sequence, id, its values (f, …), its part of out) for every group of frames."""
    members: dict[int, list[int]] = {}
    for frame, number in enumerate(group.tolist()):
        members.setdefault(number, []).append(frame)
    groups = list(members.items())
    # Detached: the threads below do not know that the caller records no gradients.
    rgb, values = rgb.detach().to(values.dtype), values.detach()
    alone = len(groups) < cores()
    space = (values.new_ones(1, rgb.shape[2]) if psi is None else psi).numpy()

    def work(i: int) -> None:
        number, frames = groups[i]
        # Neighbouring frames are a view and cost no copy.
        joined = frames == list(range(frames[0], frames[-1] + 1))
        mine = slice(frames[0], frames[-1] + 1) if joined else torch.as_tensor(frames)
        target = out[mine].numpy()
        sequence = ColorSequence(rgb[mine].contiguous().numpy(), space, basis, cores() if alone else 1)
        function(sequence, number, values[mine].contiguous().numpy(), target)
        if not joined:
            # Not through torch: the threads do not know of the caller's inference mode either.
            out.numpy()[frames] = target

    if alone:
        for i in range(len(groups)):
            work(i)
    else:
        each(work, len(groups))


def product(rgb: Tensor, values: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None) -> Tensor:  # noqa: ARG001
    """Twin of ``grid.product``, for float32 and float64."""
    out = torch.empty_like(values, memory_format=torch.contiguous_format)

    def function(sequence: ColorSequence, _: int, v: Array, target: Array) -> None:
        sequence.product(sequence.spectrum(v), target)

    _for_each_group(rgb, values, out, group, psi, basis, function)
    return out


def energy(
    rgb: Tensor, maps: Tensor, group: Tensor, groups: int, basis: ColorBasis, psi: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Twin of ``grid.energy``, for float32 and float64."""
    out = torch.empty_like(maps, memory_format=torch.contiguous_format)[:, None]
    totals = np.zeros((groups, 2))

    def function(sequence: ColorSequence, number: int, v: Array, target: Array) -> None:
        spectrum = sequence.spectrum(v)
        totals[number] = np.einsum("abkcd,abkcd->c", spectrum, spectrum, dtype=np.float64)
        sequence.product(np.ascontiguousarray(spectrum[:, :, :, 1:]), target)

    values = torch.stack([torch.ones_like(maps), maps - 0.5], dim=1)
    _for_each_group(rgb, values, out, group, psi, basis, function)
    return torch.from_numpy(totals), out[:, 0]
