"""A stand-in for a recorded pass, on a CPU."""

import random
import time


class OneBuffer:
    """As :class:`Recorded`: inputs and outputs at fixed addresses, and a device that takes its time."""

    def __init__(self, compute, rows, device):  # noqa: ARG002 - as Recorded
        self._compute, self._inputs, self._outputs = compute, None, None

    def __call__(self, tensors):
        if self._inputs is None:
            self._inputs = {name: tensor.clone() for name, tensor in tensors.items()}
            self._outputs = [part.clone() for part in self._compute(self._inputs)]
        for name, buffer in self._inputs.items():
            buffer.copy_(tensors[name])
        time.sleep(random.random() / 100)
        for output, part in zip(self._outputs, self._compute(self._inputs), strict=True):
            output.copy_(part)
        time.sleep(random.random() / 100)
        return self._outputs
