"""What the colour terms share: their arguments, and the two ways to a gradient."""

from collections.abc import Hashable

from torch import Tensor, nn

from colocam.affinity import engine
from colocam.losses.pairwise import Compute, Term
from colocam.utils.finite import require_finite_on_cpu, require_sequences, require_shapes


class SequenceLoss(nn.Module):
    """A scalar of the frames of each sequence taken together.

    Args:
        compute: value and gradient as in ``energy.Term``: (s, rgb, group, gaussian, groups, *options).
        gaussian: the affinity.
        options: what else ``compute`` needs.
    """

    def __init__(self, compute: Compute, gaussian: engine.Gaussian, *options: Hashable) -> None:
        super().__init__()
        self.compute, self.gaussian, self.options = compute, gaussian, options

    def forward(self, frames: Tensor, maps: Tensor, sequences: Tensor, count: int | None = None) -> Tensor:
        """Scalar loss; 0 where no sequence has two frames.

        Args:
            frames: (B, 3, H, W) in 0–255.
            maps: (B, H, W) foreground probability.
            sequences: (B,) integer id of each frame's sequence, 0 … count-1, in any order.
            count: number of sequences. Where left out, it is read off the ids, which makes the host wait if they are
                on a CUDA device.
        """
        return self._term(frames, maps, sequences, count).differentiable()

    def value_and_gradient(
        self, frames: Tensor, maps: Tensor, sequences: Tensor, count: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Scalar and ∂loss/∂maps (B, H, W) in the maps' type: what ``forward`` and autograd give, without autograd.

        For those who have the maps' gradient in their own hands, or add up several terms before one backward pass,
        ``maps.backward(gradient)``: on CUDA autograd hands that pass to another thread, which can take longer than the
        device needs for both. No graph is built, and the caller owns both tensors. The gradient is rounded to the
        maps' type before any λ: where float16 would not hold it, pass ``maps.float()``. Arguments as for ``forward``.
        """
        return self._term(frames, maps, sequences, count).value_and_gradient()

    def _term(self, frames: Tensor, maps: Tensor, sequences: Tensor, count: int | None) -> Term:
        name = type(self).__name__
        require_shapes(name, frames, maps)
        require_finite_on_cpu(name, frames=frames, maps=maps)
        group, groups = require_sequences(name, sequences, maps, count)
        return Term(maps, self.compute, (frames, group), (self.gaussian, groups, *self.options))
