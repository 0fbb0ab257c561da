"""Eq. 4 is close to its product: few files lie between the training step and the compiled loop over pixels."""

import sys
from pathlib import Path

import torch

import colocam
from colocam.affinity import cpu, cpu_kernels
from colocam.losses import CoLocLoss

PACKAGE = str(Path(colocam.__file__).parent)


def test_coloc_reaches_the_compiled_product_through_at_most_five_files(monkeypatch):
    monkeypatch.setattr(cpu, "cores", lambda: 1)  # in this thread, so that the stack is whole
    frames = torch.randint(0, 256, (2, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    maps = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(1))
    sequences, loss = torch.zeros(2, dtype=torch.int64), CoLocLoss()
    loss(frames, maps, sequences, 1)  # builds what is cached later

    entered, stack, compiled = [], [], cpu_kernels.splat

    def splat(*arguments):
        frame = sys._getframe(1)
        while frame is not None:
            stack.append(frame.f_code.co_filename)
            frame = frame.f_back
        compiled(*arguments)

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.append(Path(frame.f_code.co_filename).name)

    monkeypatch.setattr(cpu_kernels, "splat", splat)
    sys.setprofile(note)
    try:
        loss(frames, maps, sequences, 1)
    finally:
        sys.setprofile(None)

    on_the_way = list(dict.fromkeys(Path(name).name for name in reversed(stack) if name.startswith(PACKAGE)))
    assert on_the_way == ["coloc.py", "pairwise.py", "engine.py", "cpu.py"]
    # besides these and the compiled loops: the check for NaN, and the basis of the Gaussian
    assert set(entered) - {*on_the_way, "cpu_kernels.py"} <= {"finite.py", "basis.py"}
