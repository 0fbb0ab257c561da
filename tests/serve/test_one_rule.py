"""One rule for marks: ``page/marks.js`` and ``serve/marks.py`` give the same for the same corrections.

Both run the cases of ``marks.json``, which say what the screen shows, and the same random histories.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from colocam.serve.exchange import object_rows
from colocam.serve.marks import Correction, frame_states, history_of, objects_of
from colocam.serve.video_data import VideoResults
from tests.helpers.random_corrections import random_corrections
from tests.helpers.served_results import results_of

CASES = json.loads((Path(__file__).parent / "marks.json").read_text(encoding="utf-8"))
REPLAY = """
async (cases) => {
  const address = document.querySelector("link[rel=modulepreload][href$='/marks.js']");
  const rule = await import(address.href);
  return cases.map(({ corrections, count, cuts, absent, model }) => {
    const history = { done: [], undone: [] }, results = { box: model, tag: model.map(() => "cat") };
    for (const correction of corrections) rule.applyCorrection(history, correction);
    const frames = [...model.keys()], objects = rule.objectsOf(history.done, frames, cuts, absent);
    const all = (marks, look) => frames.map((at) => look(marks, results, at));
    return {
      states: [...rule.frameStates(objects, count)],
      objects: Object.fromEntries([...objects].map(([number, marks]) => [number, {
        state: [...marks.state], box: marks.box, tag: marks.tag, kept: [...marks.kept], accepted_tag: marks.acceptedTag,
        main: [...marks.main], base: marks.base, loose: [...marks.loose],
        shows: all(marks, rule.boxOf), shown_tag: all(marks, rule.tagOf),
      }])),
    };
  });
}
"""


def in_python(case):
    """What :data:`REPLAY` gives, by the server."""
    corrections = TypeAdapter(list[Correction]).validate_python(case["corrections"])
    results: VideoResults = results_of(case["model"], case["cuts"], case["absent"])
    objects = objects_of(history_of(corrections).actions, results.index.frames, results.index.cuts, results.absent)
    listed = {}
    for number, marks in objects.items():
        rows = object_rows(results, marks)
        own = {name: value if isinstance(value, list) else np.asarray(value) for name, value in marks._asdict().items()}
        listed[str(number)] = own | {"shows": rows.box, "shown_tag": rows.tag}
    return {"states": frame_states(objects.values()).tolist(), "objects": listed}


def boxes(values):
    return np.array([value if value is not None else [np.nan] * 4 for value in values], float).reshape(-1, 4)


def same(page, server, why):
    """Compare what the page and the server have."""
    assert page["states"] == server["states"], why
    assert set(page["objects"]) == set(server["objects"]), why
    for number, ours in server["objects"].items():
        theirs = page["objects"][number]
        for name in ("state", "kept", "main", "loose"):
            assert theirs[name] == ours[name].astype(int).tolist(), (name, number, why)
        for name in ("tag", "accepted_tag", "shown_tag"):
            assert theirs[name] == ours[name], (name, number, why)
        for name in ("box", "base", "shows"):
            np.testing.assert_allclose(boxes(theirs[name]), ours[name], atol=0.011, err_msg=f"{name} {number} {why}")


def random_case(seed):
    rng = np.random.default_rng(seed)
    count = 10
    cuts = sorted({0, *rng.integers(1, count, int(rng.integers(0, 3))).tolist()})
    absent = [at for at in range(count) if rng.random() < 0.3]
    model = [None if rng.random() < 0.3 else [at + 1, 2, at + 9, 10] for at in range(count)]
    corrections = random_corrections(rng, count)
    return {"corrections": corrections, "count": count, "cuts": cuts, "absent": absent, "model": model}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_server_shows_what_the_case_says(case):
    said(in_python(case), case)


def said(replayed, case):
    assert replayed["states"] == case["states"]
    assert list(replayed["objects"]) == list(case["shows"])
    for number, shows in case["shows"].items():
        np.testing.assert_allclose(boxes(replayed["objects"][number]["shows"]), boxes(shows))
    for number, tags in case.get("tags", {}).items():
        assert replayed["objects"][number]["shown_tag"] == tags


def test_the_page_shows_what_the_cases_say_and_agrees_with_the_server_after_random_corrections(one):
    for replayed, case in zip(one.page.evaluate(REPLAY, CASES), CASES, strict=True):
        said(replayed, case)
        same(replayed, in_python(case), case["name"])
    cases = [random_case(seed) for seed in range(400)]
    for seed, (replayed, case) in enumerate(zip(one.page.evaluate(REPLAY, cases), cases, strict=True)):
        same(replayed, in_python(case), f"seed {seed}")


@pytest.mark.parametrize("seed", range(40))
def test_a_split_changes_no_box(seed):
    case = random_case(seed)
    before = in_python(case)
    for number in before["objects"]:
        move = {"kind": "move", "start": 4, "stop": 10, "into": 9} | ({"track": int(number)} if number != "1" else {})
        after = in_python({**case, "corrections": [*case["corrections"], {"kind": "edit", "actions": [move]}]})
        shown = {other: own["shows"] for other, own in after["objects"].items()}
        nothing = np.full((10, 4), np.nan)
        halves = shown.get(number, nothing)[:4], shown.get("9", nothing)[4:]
        np.testing.assert_allclose(np.concatenate(halves), before["objects"][number]["shows"])
