"""What a step sees: every clip, nothing twice, whole batches, and nothing but (seed, epoch) decides."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from colocam.data.batches import SAMPLERS, central, kept_clips, plan_frames, plan_sequences
from colocam.errors import ColocamError
from colocam.video.frame_choice import evenly

lengths = st.lists(st.integers(1, 30), min_size=1, max_size=12)


def equal(first, second):
    return len(first) == len(second) and all(
        torch.equal(getattr(a, part), getattr(b, part))
        for a, b in zip(first, second, strict=True)
        for part in ("clips", "frames", "sequences")
    )


@given(lengths, st.integers(1, 6), st.integers(1, 8), st.sampled_from([0.3, 0.6, 1.0]), st.integers(0, 50))
def test_planned_frames(lengths, per_clip, batch, window, epoch):
    arguments = {"per_clip": per_clip, "batch": batch, "window": window, "seed": 4, "epoch": epoch}
    plan = plan_frames(lengths, **arguments)
    total = per_clip * len(lengths)
    sizes = [batch] * (total // batch) or [total]
    assert [len(step.clips) for step in plan] == sizes
    picked = Counter((c, f) for step in plan for c, f in zip(step.clips.tolist(), step.frames.tolist(), strict=True))
    for (clip, frame), times in picked.items():
        first, last = central(lengths[clip], window)
        assert first <= frame < last
        assert times <= -(-per_clip // (last - first))  # again only after every other frame of the window
    per = Counter(clip for step in plan for clip in step.clips.tolist())
    assert all(per[clip] <= per_clip for clip in per)
    if total % batch == 0 or total < batch:
        assert per == dict.fromkeys(range(len(lengths)), per_clip)
    for step in plan:
        assert step.sequences.tolist() == list(range(len(step.clips)))
    torch.manual_seed(epoch)
    assert equal(plan, plan_frames(lengths, **arguments))


@given(lengths, st.integers(1, 5), st.integers(1, 3), st.integers(1, 16), st.sampled_from(sorted(SAMPLERS)))
def test_planned_sequences(lengths, n, per_clip, batch, sampler):
    arguments = {"n": n, "per_clip": per_clip, "batch": batch, "window": 0.6, "seed": 1, "epoch": 2}
    plan = plan_sequences(lengths, SAMPLERS[sampler], **arguments)
    a_step = min(max(batch // n, 1), per_clip * len(lengths))
    assert len(plan) == per_clip * len(lengths) // a_step
    seen = Counter()
    for step in plan:
        assert step.sequences.unique().tolist() == list(range(a_step))
        assert (step.sequences.diff() >= 0).all()
        for number in range(a_step):
            inside = step.sequences == number
            (clip,) = step.clips[inside].unique().tolist()
            seen[clip] += 1
            first, last = central(lengths[clip], 0.6)
            assert set(step.frames[inside].tolist()) <= set(range(first, last))
    assert all(times <= per_clip for times in seen.values())
    if (per_clip * len(lengths)) % a_step == 0:
        assert seen == dict.fromkeys(range(len(lengths)), per_clip)
    assert equal(plan, plan_sequences(lengths, SAMPLERS[sampler], **arguments))


@pytest.mark.parametrize("change", [{"seed": 1}, {"epoch": 1}])
def test_seed_and_epoch_change_the_plan_but_not_its_length(change):
    arguments = {"per_clip": 2, "batch": 4, "window": 1.0, "seed": 0, "epoch": 0}
    sequences = partial(plan_sequences, sampler=SAMPLERS["adjacent"], n=2)
    for plan in (plan_frames, sequences):
        one, other = (plan([9, 8, 7, 12], **arguments | changed) for changed in ({}, change))
        assert len(one) == len(other)
        assert not equal(one, other)


@given(st.integers(0, 500), st.integers(1, 40))
def test_evenly_spread_frames(length, count):
    chosen = evenly(length, count)
    assert len(chosen) == min(length, count)
    assert chosen == sorted(set(chosen))
    assert all(0 <= frame < length for frame in chosen)
    if length > count:
        gaps = np.diff(chosen)
        assert gaps.max(initial=0) - gaps.min(initial=length) <= 1
        assert abs((length - 1 - chosen[-1]) - chosen[0]) <= 1  # as far from the end as from the beginning


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20), st.integers(0, 3), st.integers(0, 5))
def test_as_many_clips_of_each_tag_are_left_out(tags, leave_out, draw):
    counts = Counter(tags)
    if min(counts.values()) <= leave_out:
        with pytest.raises(ColocamError, match="leave_out must be below the"):
            kept_clips(tags, leave_out, draw)
        return
    kept = kept_clips(tags, leave_out, draw).tolist()
    assert kept == sorted(set(kept))
    assert Counter(tags[number] for number in kept) == {tag: count - leave_out for tag, count in counts.items()}
    assert kept_clips(tags, leave_out, draw).tolist() == kept
    if leave_out == 0:
        assert kept == list(range(len(tags)))
