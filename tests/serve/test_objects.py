"""Several objects: replayed against a plain loop, through the routes to tables, corrections and labels, and back."""

import csv
import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.labels import read_corrections
from colocam.serve.marks import ACCEPTED, ASKED, BOX, FOLLOWS, NONE, PREDICTED, Action, Change, frame_states, objects_of

COUNT = 12


def span(first, last):
    return {"start": first, "stop": last}


@st.composite
def actions(draw):
    kind = draw(st.sampled_from(["box", "none", "accepted", "class", "clear", "move"]))
    start = draw(st.integers(0, COUNT - 1))
    stop = draw(st.integers(start + 1, COUNT))
    number = draw(st.integers(1, 3))
    if kind == "box":
        x = draw(st.integers(0, 30))
        return Action(kind=kind, start=start, stop=start + 1, track=number, box=[x, 4, x + 10, 12])
    more = {"class": {"tag": "dog"}, "move": {"into": number % 3 + 1}}.get(kind, {})
    return Action(kind=kind, start=start, stop=stop, track=number, **more)


def by_frame(listed):
    """Of each object and frame, before anything follows: state, box, class, and whether the model's object is this."""
    cells = {(number, frame): [PREDICTED, None, "", number == 1] for number in (1, 2, 3) for frame in range(COUNT)}
    for action in listed:
        for frame in range(action.start, min(action.stop, COUNT)):
            cell = cells[action.track, frame]
            if action.kind == "move":
                other = cells[action.into, frame]
                takes = (other[0] == PREDICTED and cell[0] != PREDICTED) or (other[0] == NONE and cell[0] in {1, BOX})
                other[2] = (cell[2] if takes else "") or other[2] or cell[2]
                if takes:
                    other[:2] = cell[:2]
                other[3] = other[3] or cell[3]
                cells[action.track, frame] = [PREDICTED, None, "", False]
            elif action.kind == "class":
                cell[2] = action.tag
            elif action.kind == "accepted":
                cell[0] = cell[0] or ACCEPTED
            else:
                cell[:2] = [{"box": BOX, "none": NONE, "clear": PREDICTED}[action.kind], action.box]
                if action.kind == "clear" and cell[3]:
                    cell[2] = ""
    return cells


@settings(max_examples=80)
@given(st.lists(actions(), max_size=10))
def test_objects_are_those_of_a_loop_over_frames(listed):
    frames = np.arange(COUNT)
    found = objects_of(listed, frames, np.ones(COUNT, bool))  # each frame is a shot: nothing follows
    cells = by_frame(listed)
    for number in (1, 2, 3):
        own = [cells[number, frame] for frame in range(COUNT)]
        if number not in found:
            assert not any(cell[0] or cell[3] for cell in own)
            continue
        marks = found[number]
        assert marks.state.tolist() == [cell[0] for cell in own]
        assert marks.tag == [cell[2] for cell in own]
        assert marks.main.tolist() == [cell[3] for cell in own]
        np.testing.assert_array_equal(marks.box, [cell[1] or [np.nan] * 4 for cell in own])
    assert sum(marks.main.astype(int) for marks in found.values()).tolist() == [1] * COUNT


def test_each_object_follows_its_own_marks_and_a_frame_is_as_sure_as_its_least_sure_object():
    drawn = [Action(kind="box", start=at, stop=at + 1, track=2, box=[at, 0, at + 5, 5]) for at in (2, 8)]
    accepted = Action(kind="accepted", start=0, stop=6)
    frames, cuts, absent = np.arange(COUNT), np.zeros(COUNT, bool), np.isin(np.arange(COUNT), (4, 5))
    objects = objects_of([*drawn, accepted], frames, cuts, absent)
    # Where the model sees nothing the page asks; elsewhere a box follows, since no prediction stands there.
    assert objects[2].state.tolist() == [0, 0, BOX, FOLLOWS, ASKED, ASKED, FOLLOWS, FOLLOWS, BOX, 0, 0, 0]
    assert objects[2].box[5].tolist() == [5, 0, 10, 5]
    assert objects[1].state.tolist() == [ACCEPTED] * 6 + [PREDICTED] * 6
    assert frame_states(objects.values()).tolist() == [1, 1, 1, FOLLOWS, ASKED, ASKED] + [PREDICTED] * 6


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"kind": "move", "start": 0, "stop": 5}, "moves into"),
        ({"kind": "move", "start": 0, "stop": 5, "track": 2, "into": 2}, "another one"),
        ({"kind": "none", "start": 0, "stop": 5, "into": 2}, "moves into"),
        ({"kind": "add", "start": 0, "stop": 1, "tag": "cat", "boxes": [None]}, "above 1"),
        ({"kind": "add", "start": 0, "stop": 1, "track": 2, "tag": "cat"}, "needs boxes"),
        ({"kind": "none", "start": 0, "stop": 5, "track": 0}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(served, action, why):
    answer = post(served, [action])
    assert answer.status_code == 422
    assert why in answer.json()["error"]


def post(served, listed):
    version = served.store.history(served.film)[0]
    body = {"client": f"client-{version:04d}", "version": version, "change": {"kind": "edit", "actions": listed}}
    return served.client.post(f"/api/films/{served.film}/history", json=body)


def exported(served, to):
    made = served.client.post("/api/exports", json={"to": to})
    assert made.status_code == 201, made.json()
    return served.client.get(f"/api/exports/{made.json()['id']}/{made.json()['name']}").content


def files_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        return {name: zipped.read(name).decode() for name in zipped.namelist()}


def table(served):
    return list(csv.DictReader(io.StringIO(files_of(exported(served, "csv"))["film.csv"])))


def boxes(rows):
    """Of each track the boxes by frame."""
    found = {}
    for row in rows:
        if row["x1"]:
            corners = [float(row[side]) for side in ("x1", "y1", "x2", "y2")]
            found.setdefault(row["track"], {})[int(row["frame"])] = corners
    return found


DOG = [
    {"kind": "box", **span(3, 4), "track": 2, "box": [40, 10, 50, 20]},
    {"kind": "class", **span(0, 40), "track": 2, "tag": "dog"},
]


def test_a_second_object_reaches_table_corrections_and_every_format(served):
    before = table(served)
    assert post(served, DOG).status_code == 200
    post(served, [{"kind": "box", **span(7, 8), "track": 2, "box": [44, 10, 54, 20]}])
    rows = table(served)
    assert {row["class"] for row in rows if row["track"] == "1"} == {"dog"}
    assert boxes(rows)["1"] == {at: [37 + at, 10, 47 + at, 20] for at in range(3, 8)}
    assert boxes(rows)["0"] == boxes(before)["0"]
    assert [row["score"] for row in rows if row["track"] == "0"] == [row["score"] for row in before]
    coco = next(text for name, text in files_of(exported(served, "coco")).items() if name.endswith(".json"))
    names = {one["id"]: one["name"] for one in json.loads(coco)["categories"]}
    assert sorted(names[one["category_id"]] for one in json.loads(coco)["annotations"]).count("dog") == 5
    for to in served.client.get("/api/formats").json()["export"]:
        assert exported(served, to), to
    said = list(csv.DictReader(io.StringIO(files_of(exported(served, "corrections"))["corrections.csv"])))
    # The frames that nobody checked are no key frames, and what else is in a frame is listed as it is shown.
    assert [(int(row["frame"]), row["track"], row["kind"], row["key"]) for row in said] == [
        (at, track, kind, key)
        for at in range(3, 8)
        for track, kind, key in (("1", "accepted", "0"), ("2", "class", "1" if at in {3, 7} else "0"))
    ]
    (card,) = served.client.get("/api/films").json()["films"]
    assert (card["checked"], card["interpolated"]) == (0, 0)
    post(served, [{"kind": "accepted", **span(3, 8)}])
    (card,) = served.client.get("/api/films").json()["films"]
    assert (card["checked"], card["interpolated"]) == (2 / 40, 3 / 40)


def test_one_object_is_stored_as_before(served):
    post(served, [{"kind": "box", **span(3, 4), "box": [1, 2, 11, 12]}])
    assert served.store.events(served.film)[0].change.as_json() == {
        "kind": "edit",
        "actions": [{"kind": "box", "start": 3, "stop": 4, "box": [1.0, 2.0, 11.0, 12.0]}],
    }
    said = list(csv.DictReader(io.StringIO(files_of(exported(served, "corrections"))["corrections.csv"])))
    assert [row["track"] for row in said] == [""]


def test_split_join_delete_and_undo(served):
    before = table(served)
    post(served, [{"kind": "move", **span(10, 40), "track": 1, "into": 2}])
    rows = table(served)
    assert list(boxes(rows)["0"]) == list(range(10))
    assert boxes(rows)["1"] == {at: box for at, box in boxes(before)["0"].items() if at >= 10}
    # What is said of the second one stays, when it becomes a part of the first one again.
    post(served, [{"kind": "box", **span(12, 13), "track": 2, "box": [1, 2, 11, 12]}])
    post(served, [{"kind": "move", **span(0, 40), "track": 2, "into": 1}])
    rows = table(served)
    assert list(boxes(rows)) == ["0"]
    assert boxes(rows)["0"] == {**boxes(before)["0"], 12: [1, 2, 11, 12]}
    post(served, DOG)
    assert len(boxes(table(served))) == 2
    post(served, [{"kind": "clear", **span(0, 40), "track": 2}])
    assert len(boxes(table(served))) == 1
    for _ in range(5):
        version = served.store.history(served.film)[0]
        served.store.append(served.film, f"undo-{version:05d}", version, Change(kind="undo"))
    assert table(served) == before


def test_corrections_of_several_objects_come_back(served, tmp_path):
    post(served, DOG)
    post(served, [{"kind": "none", **span(5, 6), "track": 2}])
    post(served, [{"kind": "box", **span(7, 8), "track": 2, "box": [44, 10, 54, 20]}])
    post(served, [{"kind": "accepted", **span(3, 4), "tag": "cat", "boxes": [[8, 6, 28, 30]]}])
    rows, data = table(served), exported(served, "corrections")
    (tmp_path / "corrections.csv").write_text(files_of(data)["corrections.csv"])
    assert {one.track for one in read_corrections(tmp_path / "corrections.csv")} == {1, 2}
    post(served, [{"kind": "clear", **span(0, 40)}, {"kind": "clear", **span(0, 40), "track": 2}])
    assert len(boxes(table(served))) == 1
    version = served.store.history(served.film)[0]
    path = f"/api/films/{served.film}/labels?format=corrections&client=again-0001&version={version}"
    assert served.client.post(path, content=data, headers={"x-film-name": "c.zip"}).status_code == 200
    assert table(served) == rows


@pytest.mark.parametrize("to", ["cvat", "coco", "yolo", "voc", "mot"])
def test_labels_of_several_objects_come_back_to_their_objects(served, to):
    if to not in served.client.get("/api/formats").json()["import"]:
        pytest.skip("cannot be imported")
    moving = [{"kind": "box", **span(at, at + 1), "track": 2, "box": [30 + at, 30, 40 + at, 44]} for at in range(3, 9)]
    post(served, [*moving, DOG[1]])
    data, rows = exported(served, to), table(served)
    post(served, [{"kind": "clear", **span(0, 40), "track": 2}])
    version = served.store.history(served.film)[0]
    path = f"/api/films/{served.film}/labels?format={to}&client=again-0001&version={version}"
    answer = served.client.post(path, content=data, headers={"x-film-name": "labels.zip"})
    assert answer.status_code == 200, answer.json()
    again = table(served)
    assert {row["class"] for row in again if row["track"] != "0"} == {"dog"}
    (new,) = [own for track, own in boxes(again).items() if track != "0"]
    for at, box in boxes(rows)["1"].items():
        np.testing.assert_allclose(new[at], box, atol=1.01)
    for at, box in boxes(rows)["0"].items():
        np.testing.assert_allclose(boxes(again)["0"][at], box, atol=1.01)


def test_objects_that_the_model_finds_are_offered_until_somebody_takes_them(served, wait_until_done):
    assert served.client.get(f"/api/films/{served.film}").json()["results"]["others"] == []
    key = served.client.get(f"/api/films/{served.film}").json()["results_key"]
    answer = served.client.post("/api/settings", json={"presence": None, "threshold": None, "instances": True})
    assert answer.status_code == 200
    wait_until_done(served.library)
    detail = served.client.get(f"/api/films/{served.film}").json()
    assert detail["results_key"] != key
    offered = [2, 32, 22, 46]
    assert detail["results"]["box"][5] == [10, 6, 30, 30]  # the one that is longest in the shot
    assert detail["results"]["others"] == [{"tag": "cat", "at": 4, "boxes": [offered] * 8}]
    assert boxes(table(served))["1"] == dict.fromkeys(range(4, 12), offered)
    assert served.client.get(f"/api/films/{served.film}/maps?start=0&count=40").status_code == 200
    # Taken, it has a number; deleted, it does not come back.
    taken = {"kind": "add", **span(4, 12), "track": 2, "tag": "dog", "boxes": [offered] * 8}
    post(served, [taken, {"kind": "box", **span(6, 7), "track": 2, "box": [4, 32, 24, 46]}])
    rows = table(served)
    assert boxes(rows)["1"] == {**dict.fromkeys(range(4, 12), offered), 6: [4, 32, 24, 46]}
    assert {row["class"] for row in rows if row["track"] == "1"} == {"dog"}
    post(served, [{"kind": "none", **span(4, 12), "track": 2}])
    assert list(boxes(table(served))) == ["0"]


def test_classes_are_added_and_kept(served, tmp_path):
    assert served.client.post("/api/classes", json={"name": " red \n fox"}).json() == {
        "name": "red fox",
        "classes": ["cat", "dog", "red fox"],
    }
    assert served.client.post("/api/classes", json={"name": "CAT"}).json()["name"] == "cat"
    for name in ("", " \n", "x" * 201, 7):
        assert served.client.post("/api/classes", json={"name": name}).status_code == 422
    detail = served.client.get(f"/api/films/{served.film}").json()
    assert detail["classes"] == ["cat", "dog", "red fox"]
    assert served.client.get("/api/films").json()["tags"] == ["cat", "dog"]
    stored = json.loads((tmp_path / "page" / "colocam-serve.json").read_text())
    assert stored["classes"] == ["red fox"]
    post(served, [{"kind": "class", **span(0, 25), "tag": "red fox"}])
    assert {row["class"] for row in table(served)} == {"red fox", "cat"}
    data = exported(served, "corrections")
    version = served.store.history(served.film)[0]
    path = f"/api/films/{served.film}/labels?format=corrections&client=again-0001&version={version}"
    assert served.client.post(path, content=data, headers={"x-film-name": "c.zip"}).status_code == 200
    served.workspace.classes = []
    refused = served.client.post(path.replace("0001", "0002"), content=data, headers={"x-film-name": "c.zip"})
    assert "add it on the page" in refused.json()["error"]
