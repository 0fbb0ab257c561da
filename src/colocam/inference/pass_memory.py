"""Shared memory of a film worker and the network: images of passes one way, post-processed outputs the other."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colocam.inference.network import HostOutput, OutputShape
from colocam.temporal.cuts import WINDOW
from colocam.types import Levels
from colocam.utils.child_processes import map_file, memory_file

PASSES = 3
"""Passes that a worker may fill before the network has taken the first."""
OUTPUTS = 3
"""Windows whose outputs may be under way."""


@dataclass(frozen=True, slots=True)
class PassSizes:
    """Sizes of the shared memory.

    Attributes:
        rows: frames of a pass at most.
        shape: of the network's outputs.
    """

    rows: int
    shape: OutputShape

    @property
    def pass_bytes(self) -> int:
        """Bytes of the images of a pass."""
        return self.rows * self.shape.size**2 * 3

    @property
    def output_bytes(self) -> int:
        """Bytes of the outputs of a pass or of a window, with maps as float32."""
        return max(self.rows, WINDOW) * 4 * (2 * self.shape.classes + self.shape.map_size**2)

    def file(self) -> int:
        """An open file of the memory; the caller closes it."""
        return memory_file(PASSES * self.pass_bytes + OUTPUTS * self.output_bytes)


class PassMemory:
    """The shared memory, on either side; ``file`` is closed here."""

    def __init__(self, file: int, sizes: PassSizes) -> None:
        self._sizes = sizes
        memory = np.frombuffer(map_file(file), np.uint8)
        split = PASSES * sizes.pass_bytes
        self._passes = memory[:split].reshape(PASSES, sizes.rows, sizes.shape.size, sizes.shape.size, 3)
        self._outputs = memory[split:].reshape(OUTPUTS, sizes.output_bytes)

    def images(self, slot: int) -> Levels:
        """(rows, S, S, 3) images of a pass."""
        images: Levels = self._passes[slot]
        return images

    def write_output(self, slot: int, output: HostOutput) -> tuple[str, int]:
        """Write an output; returns what :meth:`read_output` needs: the type of its maps, and the number of frames."""
        begin = 0
        for part in output:
            data = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
            self._outputs[slot, begin : begin + len(data)] = data
            begin += len(data)
        return output.maps.dtype.name, len(output.logits)

    def read_output(self, slot: int, maps: str, frames: int) -> HostOutput:
        """A copy of the output in a slot."""
        classes, side = self._sizes.shape.classes, self._sizes.shape.map_size
        shapes = (("float32", (frames, classes)), (maps, (frames, side, side)), ("float32", (frames, classes)))
        parts: list[npt.NDArray[np.generic]] = []
        begin = 0
        for kind, shape in shapes:
            length = int(np.prod(shape)) * np.dtype(kind).itemsize
            parts.append(self._outputs[slot, begin : begin + length].copy().view(kind).reshape(shape))
            begin += length
        return HostOutput(*parts)  # type: ignore[arg-type]
