"""Recorded functions with a stand-in for the CUDA graph: fixed addresses, padded rows, and what is not recorded."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from colocam.utils import cuda_graphs
from colocam.utils.cuda_graphs import Recorded, RecordedLoss, Recording

GPU, CPU = torch.device("cuda"), torch.device("cpu")


class Graph:
    """Replays as a graph does: it reads and writes only the tensors that it was recorded with."""

    def __init__(self, compute, inputs):
        self.compute, self.inputs = compute, inputs
        self.outputs = compute(inputs)
        self.replays = 0

    def replay(self):
        self.replays += 1
        for buffer, value in zip(self.outputs, self.compute(self.inputs), strict=True):
            buffer.copy_(value)


@pytest.fixture
def graphs(monkeypatch):
    made = []

    def record(compute, inputs):
        made.append(Graph(compute, inputs))
        return Recording(inputs, made[-1].outputs, made[-1].replay)

    monkeypatch.setattr(cuda_graphs, "record", record)
    return made


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


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8), room=st.integers(1, 9))
def test_any_order_of_batch_sizes(sizes, room):
    with pytest.MonkeyPatch.context() as patch:
        made = []
        patch.setattr(
            cuda_graphs,
            "record",
            lambda f, inputs: (made.append(g := Graph(f, inputs)), Recording(inputs, g.outputs, g.replay))[1],
        )
        run = Recorded(compute, room, GPU)
        for seed, count in enumerate(sizes):
            assert same(run(rows(count, seed)), compute(rows(count, seed)))
    assert len(made) == any(size <= room for size in sizes)
    assert sum(graph.replays for graph in made) == sum(size <= room for size in sizes)


def test_other_shapes_are_recorded_again_and_never_broadcast(graphs):
    """Copying a single column would fill all columns of the input buffer."""
    run = Recorded(compute, 5, GPU)
    wide, narrow = rows(4), rows(4) | {"a": rows(4)["a"][:, :1].contiguous()}
    real = rows(4) | {"a": rows(4)["a"].float() + 0.5}
    for tensors, recordings in ((wide, 1), (narrow, 2), (narrow, 2), (wide, 3), (real, 4), (real, 4)):
        assert same(run(tensors), compute(tensors))
        assert len(graphs) == recordings


def test_nothing_is_recorded_on_a_cpu(graphs):
    run = Recorded(compute, 5, CPU)
    for count in (5, 3):
        assert same(run(rows(count)), compute(rows(count)))
    assert not graphs


@pytest.mark.parametrize("device", [CPU, GPU], ids=["direct", "recorded"])
def test_no_gradient_is_kept(graphs, device):
    weight = torch.ones(3, requires_grad=True)
    run = Recorded(lambda tensors: (tensors["a"] * weight,), 4, device)
    (found,) = run({"a": torch.ones(2, 3)})
    assert not found.requires_grad
    assert len(graphs) == (device == GPU)


@pytest.mark.parametrize("channels_last", [False, True])
def test_frames_keep_their_memory_layout_when_padded(graphs, channels_last):
    frames = torch.rand(3, 4, 4, 3).permute(0, 3, 1, 2) if channels_last else torch.rand(3, 3, 4, 4)
    run = Recorded(lambda tensors: (2 * tensors["frames"],), 6, GPU)
    (found,) = run({"frames": frames})
    assert torch.equal(found, 2 * frames)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    buffer = graphs[0].inputs["frames"]
    assert buffer.shape == (6, 3, 4, 4)
    assert buffer.is_contiguous(memory_format=layout)
    assert not buffer[3:].any()
    assert found.is_contiguous(memory_format=layout)


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 1, 3))
        self.unused = nn.Linear(2, 2)
        self.to(memory_format=torch.channels_last)

    def forward(self, frames):
        return self.net(frames).square().mean()


def test_a_recorded_loss_has_the_gradients_of_the_direct_one(graphs):
    """Of a multiple of it; a batch of another size is computed directly, and weights that are not used have none."""
    own, plain = Loss(), Loss()
    recorded = RecordedLoss(own, GPU)
    for rows in (5, 5, 3, 5):
        frames = torch.randn(rows, 3, 6, 6)
        for module, call in ((own, recorded), (plain, plain)):
            module.zero_grad(set_to_none=True)
            (3 * call(frames=frames)).backward()
        for one, other in zip(own.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad)
    assert [graph.replays for graph in graphs] == [3]


def test_a_warning_of_torch_about_waiting_is_noticed(monkeypatch):
    """The text is that of torch's own warning; other warnings, such as that about the mode itself, do not count."""
    modes = ["default"]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    def waits():
        warnings.warn("called a synchronizing CUDA operation (Triggered internally at …)", stacklevel=1)

    def mentions():
        warnings.warn("the mode does not yet detect all synchronizing operations", stacklevel=1)

    def another_thread_waits():
        with ThreadPoolExecutor(1) as pool:
            pool.submit(waits).result()

    shown = warnings.showwarning
    assert not cuda_graphs.makes_host_wait(another_thread_waits)
    assert cuda_graphs.makes_host_wait(waits)
    assert not cuda_graphs.makes_host_wait(mentions)
    assert not cuda_graphs.makes_host_wait(lambda: None)
    with pytest.raises(ZeroDivisionError):
        cuda_graphs.makes_host_wait(lambda: 1 / 0)
    assert modes == ["default", *["warn", "default"] * 5]
    assert warnings.showwarning is shown


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


def test_a_function_that_waits_is_never_captured(monkeypatch, capsys):
    monkeypatch.setattr(cuda_graphs, "makes_host_wait", lambda _: True)
    run = Recorded(compute, 5, GPU)
    assert same(run(rows(3)), compute(rows(3)))
    assert "makes the host wait for the GPU" in capsys.readouterr().err
