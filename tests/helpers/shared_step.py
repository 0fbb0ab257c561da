"""One training step, whole or divided among processes: what each process computes, to be compared with the whole."""

from functools import partial
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from timm.layers import BatchNormAct2d
from torch import nn

from colocam.config import Optimization, load_config
from colocam.data.batches import BatchIndices
from colocam.errors import ColocamError, InterruptedRunError
from colocam.losses import LOSSES, StepTensors
from colocam.losses.terms import frame_count
from colocam.training import distributed as processes
from colocam.training.distributed import (
    alone,
    any_of,
    first,
    joined,
    rank,
    require_same,
    shares,
    synchronize_batch_norms,
    world,
)
from colocam.training.loop import Task, make_sgd, sgd_step

SEQUENCES = torch.tensor([0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 4, 4])
INDICES = BatchIndices(torch.arange(12), torch.arange(12), SEQUENCES)
SETTINGS = load_config().localizer.losses
FORMULAS = {
    **{name: (loss.make(SETTINGS), loss.mean_over) for name, loss in LOSSES.items()},
    "own": (lambda step: step.maps.square().mean(), frame_count),
}


def step_tensors(indices):
    """The rows of ``indices`` of a step whose first sequence has no labels."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(12, 2, 6, 5, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 1, 255, 255])[torch.randint(0, 4, (12, 6, 5), generator=generator)]
    labels[SEQUENCES == 0] = 255
    frames = torch.randint(0, 256, (12, 3, 6, 5), generator=generator).double()
    own = logits[indices.rows].requires_grad_()
    maps = own.softmax(1)[:, 1]
    return StepTensors(frames[indices.rows], maps, own, labels[indices.rows], indices.sequences, indices.count, 3)


def loss_parts(indices):
    """Value and gradient of each loss."""
    found = {}
    for name, (loss, mean_over) in FORMULAS.items():
        step = step_tensors(indices)
        (share,) = shares([partial(mean_over, step)])
        value = share * loss(step)
        found[name] = value.detach(), torch.autograd.grad(value, step.logits)[0]
    return found


def norm_parts(indices, device="cpu"):
    """Output and gradients of batch norms after two steps, and their state, which is the same in all processes."""
    found = {}
    for name, make in {"plain": nn.BatchNorm2d, "with an activation": BatchNormAct2d}.items():
        torch.manual_seed(1)
        norm = nn.Sequential(make(4)).to(device)
        synchronize_batch_norms(norm)
        for scale in (1.0, 3.0):
            x, weights = (torch.randn(12, 4, 3, 2)[indices.rows].to(device) for _ in range(2))
            x = (5 + scale * x).requires_grad_()
            y = norm(x)
            gradients = torch.autograd.grad((weights * y.square()).sum(), [x, *norm.parameters()])
        found[name] = [y.detach(), gradients[0]], list(gradients[1:]), list(norm.state_dict().values())
        found[name][2].append(norm.eval()(torch.ones(1, 4, 1, 1, device=device)).detach())
    return found


def steps_with_one_broken(indices):
    """Weights after three steps; in the second, the loss of the last frame is NaN."""
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    synchronize_batch_norms(net)
    settings = Optimization(epochs=1, batch=12, lr=0.1)
    task = Task("tiny", net, [(list(net.parameters()), 1.0)], settings, *[lambda *_: None] * 4)
    optimizer, journal = make_sgd(task.groups, settings), []
    for step in range(3):
        x = torch.randn(12, 3)[indices.rows]
        broken = torch.where((torch.arange(12) == 11) & (step == 1), torch.nan, 1.0)[indices.rows]

        def terms(x=x, broken=broken):
            return {"term": (net(x)[:, 0].square() * broken).sum() / 12}

        journal.append(sgd_step(task, optimizer, terms)["loss"])
    return list(net.state_dict().values()), torch.stack(journal)


def all_parts(indices):
    return {"losses": loss_parts(indices), "norms": norm_parts(indices), "steps": steps_with_one_broken(indices)}


def refused(call):
    try:
        call()
    except ColocamError as error:
        return str(error)
    return None


def stop():
    raise InterruptedRunError("stopped in decoding")


def fail():
    raise ColocamError("the disk is full")


def save_parts(folder):
    """What a process of several computes and decides."""
    with joined("cpu") as device:
        indices = INDICES.share(rank(), world())
        found = all_parts(indices) | {"rows": (indices.rows.start, indices.rows.stop), "device": device}
        found["any"] = any_of(rank() == 1, False)
        found["first"] = first(partial(rank))
        found["same"] = refused(partial(require_same, "seeds", 1)), refused(partial(require_same, "seeds", rank()))
        found["alone"] = refused(partial(alone, fail))
        found["stopped"] = refused(partial(alone, stop))
        torch.save(found, Path(folder) / f"{rank()}.pt")


def save_norms_of_one_gpu(folder):
    """What two processes on one GPU compute; NCCL refuses to share a GPU, Gloo does not."""
    gloo = mock.patch.object(processes, "_new_group", side_effect=lambda _: dist.new_group(backend="gloo"))
    with gloo, joined("cuda") as device:
        found = norm_parts(INDICES.share(rank(), world()), device)
        torch.save(found, Path(folder) / f"{rank()}.pt")
