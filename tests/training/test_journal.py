"""metrics.jsonl: one object a line, numbers that JSON knows, and nothing twice after a rewind."""

import json

import torch

from colocam.training.loop import Journal


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_wait_until_they_are_flushed_and_hold_what_json_knows(tmp_path):
    journal = Journal(tmp_path / "m.jsonl")
    numbers = {"nan": float("nan"), "inf": torch.tensor(float("inf")), "seven": torch.tensor(7)}
    journal.add("classifier", "train", 0, 1, loss=torch.tensor(0.123456789), note="ä", none=None, **numbers)
    assert not journal.path.exists()
    length = journal.flush()
    assert length == journal.path.stat().st_size
    expected = {"phase": "classifier", "event": "train", "epoch": 0, "step": 1, "loss": 0.123457, "note": "ä"}
    assert lines(journal.path) == [{**expected, "none": None, "nan": None, "inf": None, "seven": 7}]
    assert journal.flush() == length


def test_a_journal_that_someone_shortened_or_removed_grows_no_zeros(tmp_path):
    journal = Journal(tmp_path / "m.jsonl")
    journal.rewind(1000)
    assert journal.path.read_bytes() == b""
    journal.path.write_text('{"step": 1}\n')
    journal.rewind(1000)
    journal.add("p", "train", 0, 2)
    journal.flush()
    assert [line["step"] for line in lines(journal.path)] == [1, 2]
