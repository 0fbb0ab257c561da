"""Random corrections of a video, as a page may send them."""

from colocam.serve.marks import Correction

KINDS = ("box", "box", "box", "none", "none", "accepted", "class", "clear", "follow", "move", "move", "add", "video")


def random_action(rng, count, numbers=3):
    """One action in a video of ``count`` frames, about one of so many objects."""
    kind, number = str(rng.choice(KINDS)), int(rng.integers(1, numbers + 1))
    start = int(rng.integers(count))
    alone = kind == "box" or rng.random() < 0.5
    stop = start + 1 if alone else int(rng.integers(start + 1, count + 1))

    def box():
        x, y = rng.integers(0, 30, 2).tolist()
        return [x, y, x + 10.5, y + 8]

    action = {"kind": kind, "start": start, "stop": stop} | ({"track": number} if number > 1 else {})
    if kind == "box":
        action["box"] = box()
    elif kind in {"accepted", "add", "follow"}:
        action["boxes"] = [box() if kind == "follow" or rng.random() < 0.8 else None for _ in range(start, stop)]
        action["tag"] = str(rng.choice(["cat", "dog"]))
    elif kind == "class":
        action["tag"] = str(rng.choice(["cat", "dog", "fox"]))
    elif kind == "move":
        action["into"] = 1 + (number + int(rng.integers(numbers - 1))) % numbers
    if kind == "follow":
        del action["tag"]
    if kind == "add" and number == 1:
        action["track"] = 2
    if kind == "video":
        action = {"kind": kind, "start": 0, "stop": count} | ({"tag": "dog"} if rng.random() < 0.7 else {})
    return action


def random_corrections(rng, count, most=12):
    """A history: edits of a few actions each, undo and redo."""
    corrections = []
    for _ in range(int(rng.integers(2, most))):
        kind = str(rng.choice(["edit"] * 6 + ["undo", "redo"]))
        actions = [random_action(rng, count) for _ in range(int(rng.integers(1, 4)))]
        correction = {"kind": kind, "actions": actions} if kind == "edit" else {"kind": kind}
        Correction.model_validate(correction)
        corrections.append(correction)
    return corrections
