"""Recorded functions with a stand-in for the CUDA graph, and what cannot be recorded; tests/gpu records real ones."""

import pytest
import torch

from colocam.utils import cuda_graphs
from colocam.utils.cuda_graphs import Recorded, Recording

GPU = torch.device("cuda")


def compute(tensors):
    """Row by row, of several shapes and types."""
    a, b = tensors["a"], tensors["b"]
    return a.float() + b[:, None], b.long(), (a.flatten(1).float().cumsum(1) * b[:, None])


def rows(count, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return {
        "a": torch.randint(0, 255, (count, 3), dtype=torch.uint8, generator=rng),
        "b": torch.randn(count, generator=rng),
    }


def same(found, expected):
    return all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_other_shapes_are_recorded_again_and_never_broadcast(monkeypatch):
    """Copying a single column would fill all columns of the input buffer; smaller batches are padded."""
    made = []

    def record(compute, inputs):
        outputs = compute(inputs)
        made.append(inputs)
        return Recording(inputs, outputs, lambda: [x.copy_(y) for x, y in zip(outputs, compute(inputs), strict=True)])

    monkeypatch.setattr(cuda_graphs, "record", record)
    run = Recorded(compute, 5, GPU)
    wide, narrow = rows(4), rows(4) | {"a": rows(4)["a"][:, :1].contiguous()}
    real = rows(4) | {"a": rows(4)["a"].float() + 0.5}
    calls = [(wide, 1), (rows(2, 1), 1), (narrow, 2), (narrow, 2), (wide, 3), (real, 4), (real, 4), (rows(9), 4)]
    for tensors, recordings in calls:
        assert same(run(tensors), compute(tensors))
        assert len(made) == recordings


def test_a_failed_recording_is_said_once_and_computed_directly(monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("operation not permitted when stream is capturing\nand a long trace")

    monkeypatch.setattr(cuda_graphs, "makes_host_wait", lambda _: False)
    monkeypatch.setattr(cuda_graphs, "capture", fail)
    run = Recorded(compute, 5, GPU)
    for count in (4, 5, 2):
        assert same(run(rows(count)), compute(rows(count)))
    (line,) = capsys.readouterr().err.splitlines()
    assert "recording them failed: operation not permitted when stream is capturing" in line


def test_a_full_memory_is_not_hidden(monkeypatch):
    def fail(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(cuda_graphs, "makes_host_wait", lambda _: False)
    monkeypatch.setattr(cuda_graphs, "capture", fail)
    with pytest.raises(torch.OutOfMemoryError):
        Recorded(compute, 5, GPU)(rows(2))
