"""A pass of a network over batches of one shape as a CUDA graph: one launch in place of hundreds."""

from collections.abc import Callable

import torch
from torch import Tensor

WARM = 3
"""Passes before the recording, in which libraries choose their kernels and take their memory."""


class RecordedPass:
    """``run`` on batches of one shape, recorded once and replayed.

    Its input and its outputs have places of their own on the device, and each pass overwrites them: what is to be kept
    must be copied in the same stream.

    Attributes:
        input: where the present batch is.
    """

    def __init__(self, run: Callable[[Tensor], tuple[Tensor, ...]], example: Tensor) -> None:
        self.input = example.clone()
        stream = torch.cuda.Stream(example.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(example.device))
        with torch.cuda.stream(stream):
            for _ in range(WARM):
                run(self.input)
        torch.cuda.current_stream(example.device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        # Another thread may be waiting for answers meanwhile.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._outputs = run(self.input)

    def replay(self, batch: Tensor) -> tuple[Tensor, ...]:
        """Do the pass over a batch."""
        self.input.copy_(batch)
        self._graph.replay()
        return self._outputs
