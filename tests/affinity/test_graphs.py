"""When kernels are recorded and replayed, with a stand-in for the CUDA graph.

A graph reads and writes memory at fixed addresses, and so does the stand-in: it holds the tensors that it was made of.
"""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from colocam.affinity import engine, graphs
from colocam.losses import CoLocLoss, CRFLoss

POSSIBLE = graphs._possible


class Graph:
    def __init__(self, pool):
        self.own_pool = pool or object()

    def pool(self):
        return self.own_pool


class Recording(graphs._Recording):
    made = 0
    pools = ()

    def __init__(self, work, inputs, options, pool):
        Recording.made += 1
        Recording.pools = (*Recording.pools, pool)
        self.graph = Graph(pool)
        self.outputs = graphs._directly(work, inputs, options)
        for output in self.outputs:
            output.fill_(-1)  # a capture computes nothing

        def replay():
            with torch.no_grad():
                for output, result in zip(self.outputs, graphs._directly(work, inputs, options), strict=True):
                    output.data.copy_(result)  # as unnoticed by autograd as a graph

        self.graph.replay = replay


@pytest.fixture(autouse=True)
def _recorder(monkeypatch):
    monkeypatch.setattr(graphs, "_possible", lambda _: not getattr(graphs._here, "inside", False))
    monkeypatch.setattr(graphs, "_stream", lambda _: 0)
    monkeypatch.setattr(graphs, "_Recording", Recording)
    Recording.made, Recording.pools = 0, ()
    graphs.clear()
    yield
    graphs.clear()


def double(x, y, factor):
    return 2 * x + y, factor * y


def right(x, y, factor=3):
    found = graphs.replay(double, (x, y), (factor,))
    return all(torch.equal(a, b) for a, b in zip(found, double(x, y, factor), strict=True))


def pair(seed, shape=(3,)):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator), torch.rand(shape, generator=generator)


def shapes():
    return list(graphs._shapes.values())


def test_the_third_call_records_and_later_ones_follow_the_memory():
    x, y = pair(0)
    for calls in range(1, 8):
        x += 1
        y *= 2
        assert right(x, y)
        assert Recording.made == (calls >= 3)
    assert shapes()[0].own is None  # nothing was copied


def test_new_addresses_are_copied_to_memory_of_our_own():
    kept = [pair(seed) for seed in range(9)]
    assert all(right(*inputs) for inputs in kept)
    assert Recording.made == 1
    assert shapes()[0].own is not None


def test_inputs_stay_as_they_are_and_results_belong_to_the_caller():
    sets = [pair(seed) for seed in range(3)]
    before = [(x.clone(), y.clone()) for x, y in sets]
    results = [graphs.replay(double, sets[i % 3], (3,)) for i in range(15)]
    for i, result in enumerate(results):
        assert all(torch.equal(a, b) for a, b in zip(result, double(*before[i % 3], 3), strict=True))
    assert all(
        torch.equal(a, b) for given, old in zip(sets, before, strict=True) for a, b in zip(given, old, strict=True)
    )
    assert len(shapes()[0].recordings) == 3


def test_a_gradient_kept_for_the_backward_pass_survives_another_forward(monkeypatch):
    monkeypatch.setattr(engine, "replayable", lambda *_: True)
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (2, 3, 5, 6), generator=generator)
    maps = torch.rand(2, 5, 6, generator=generator).requires_grad_()
    loss = CRFLoss(60.0)
    for _ in range(4):
        value = loss(frames, maps)
    expected = torch.autograd.grad(value, maps, retain_graph=True)[0]
    with torch.no_grad():
        maps += 0.1
    with torch.inference_mode():
        loss(frames, maps)
    loss(frames, maps)
    torch.testing.assert_close(torch.autograd.grad(2 * value, maps)[0], 2 * expected, rtol=1e-6, atol=0)
    assert Recording.made == 1


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(1, 2)), max_size=60))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_shapes_addresses_and_options_is_right(calls):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphs, "_MAX_HELD_BYTES", 200)
        patch.setattr(graphs, "_MAX_SEEN", 4)
        graphs.clear()
        sets = [[pair(10 * i + j, shape) for j in range(6)] for i, shape in enumerate([(3,), (2, 2), (4,)])]
        for shape, index, factor in calls:
            x, y = sets[shape][index]
            x += 1
            assert right(x, y, factor)
        graphs.clear()


def test_dtypes_strides_and_options_have_recordings_of_their_own():
    x, y = pair(0, (4, 4))
    for _ in range(4):
        assert right(x, y)
        assert right(x.T, y)
        assert right(x.double(), y.double())
        assert right(x, y, 4)
    assert len(shapes()) == 4


def test_inputs_that_overlap_themselves_are_copied_too():
    for seed in range(6):
        x, y = pair(seed, (3, 1))
        assert right(x.expand(3, 4), y)
    assert Recording.made == 1


def nested(x, y, factor):
    return graphs.replay(double, (x, y), (factor,))


def test_work_within_work_is_not_recorded_on_its_own():
    x, y = pair(0)
    for _ in range(6):
        graphs.replay(nested, (x, y), (3,))
    assert [key[0] for key in graphs._shapes] == [nested]
    assert not graphs._here.inside


def test_recordings_of_one_stream_share_their_memory():
    sets = [pair(seed, (seed + 1,)) for seed in range(3)]
    for _ in range(4):
        assert all(right(*inputs) for inputs in sets)
    first, *others = Recording.pools
    assert first is None
    assert len(others) == 2
    assert None not in others


def test_what_cannot_be_recorded_is_said_once_and_computed_directly(monkeypatch):
    def fails(*_):
        raise RuntimeError("operation not permitted")

    monkeypatch.setattr(graphs, "_Recording", fails)
    x, y = pair(0)
    assert right(x, y)
    assert right(x, y)
    with pytest.warns(UserWarning, match="could not be recorded and are launched one by one: operation not permitted"):
        assert right(x, y)
    assert all(right(x, y) for _ in range(4))  # a second warning would be an error


def test_an_error_of_the_work_reaches_the_caller_and_leaves_nothing_behind():
    def broken(_x, _y):
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        graphs.replay(broken, pair(0), ())
    assert not graphs._here.inside
    assert right(*pair(1))


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(graphs, "_MAX_HELD_BYTES", 100)
    kept = [pair(seed, (seed + 1,)) for seed in range(8)]
    for inputs in kept:
        for _ in range(4):
            assert right(*inputs)
        assert sum(shape.held_bytes() for shape in shapes()) <= max(100, shapes()[-1].held_bytes())
    monkeypatch.setattr(graphs, "_MAX_SHAPES", 3)
    for inputs in kept:
        right(*inputs)
    assert len(shapes()) <= 3
    many = [pair(seed, (2,)) for seed in range(10)]
    for _ in range(5):
        assert all(right(*inputs) for inputs in many)
    assert len(shapes()[-1].recordings) <= graphs._MAX_ADDRESSES


def test_gradients_and_inference_mode_leave_no_trace():
    for seed in range(8):
        x, y = pair(seed)
        if seed % 2:
            with torch.inference_mode():
                assert right(x.clone(), y.clone())
        else:
            found = graphs.replay(double, (x.requires_grad_(), y), (3,))
            assert torch.equal(found[0], double(x, y, 3)[0])
    assert not any(t.requires_grad or t.is_inference() for t in shapes()[0].own[0])


ON_CUDA = SimpleNamespace(is_cuda=True)


@pytest.mark.parametrize(
    ("first", "capturing", "expected"),
    [(torch.zeros(3), False, False), (ON_CUDA, False, True), (ON_CUDA, True, False)],
)
def test_only_on_cuda_and_outside_another_capture(monkeypatch, first, capturing, expected):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)
    assert POSSIBLE((first,)) is expected


def test_nothing_is_recorded_when_switched_off(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(graphs, "ENABLED", False)
    assert not POSSIBLE((ON_CUDA,))


@pytest.mark.parametrize("count", [0, 13])
def test_nothing_is_recorded_for_no_input_or_a_large_one(monkeypatch, count):
    monkeypatch.setattr(graphs, "_MAX_INPUT_BYTES", 100)
    x, y = pair(0, (count,))
    assert all(right(x, y) for _ in range(5))
    assert Recording.made == 0


@pytest.mark.parametrize("loss", [CoLocLoss(60.0), CoLocLoss(60.0, "constant"), CRFLoss(60.0)])
def test_losses_by_replay_are_those_without(monkeypatch, loss):
    generator = torch.Generator().manual_seed(0)
    group = torch.tensor([0, 1, 0, 1])

    def both(frames, maps):
        value = loss(frames, maps) if isinstance(loss, CRFLoss) else loss(frames, maps, group, 2)
        return value, maps

    sets = []
    for _ in range(3):
        frames = torch.randint(0, 256, (4, 3, 5, 6), generator=generator)
        sets.append((frames, torch.rand(4, 5, 6, generator=generator).requires_grad_()))
    exact = []
    for frames, maps in sets:
        value, _ = both(frames, maps)
        exact.append((value, torch.autograd.grad(3 * value, maps)[0]))
    monkeypatch.setattr(engine, "replayable", lambda *_: True)
    for _ in range(5):
        # All forwards before all backwards: one must not overwrite what another kept.
        values = [both(*inputs)[0] for inputs in sets]
        for value, inputs, (expected, gradient) in zip(values, sets, exact, strict=True):
            torch.testing.assert_close(value, expected)
            torch.testing.assert_close(torch.autograd.grad(3 * value, inputs[1])[0], gradient)
    assert len(shapes()[0].recordings) == 3


def test_a_product_by_replay_is_the_one_without(monkeypatch):
    gaussian = engine.Gaussian(60.0, 1e-2)
    group = torch.tensor([0, 0])
    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        rgb = torch.randint(0, 256, (2, 3, 20), generator=generator)
        values = torch.rand(2, 2, 20, generator=generator)
        expected = engine.product(rgb, values, group, 1, gaussian)
        with monkeypatch.context() as patch:
            patch.setattr(engine, "replayable", lambda *_: True)
            torch.testing.assert_close(engine.product(rgb, values, group, 1, gaussian), expected)
    assert Recording.made == 1


def test_only_what_never_looks_at_the_data_is_replayable(monkeypatch):
    monkeypatch.setattr(engine, "_has", lambda _: True)
    floating, integer = torch.zeros(1), torch.zeros(1, dtype=torch.uint8)
    values = SimpleNamespace(is_cuda=True, dtype=torch.float32)
    assert engine.replayable(integer, values, engine.Gaussian(0.5, 1e-2))
    assert engine.replayable(floating, values, engine.Gaussian(15.0, 1e-2))
    assert not engine.replayable(floating, values, engine.Gaussian(0.5, 1e-2))
    assert not engine.replayable(integer, torch.zeros(1), engine.Gaussian(15.0, 1e-2))
    values.dtype = torch.float64
    assert not engine.replayable(integer, values, engine.Gaussian(15.0, 1e-2))
