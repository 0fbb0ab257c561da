"""metrics.jsonl: one object a line, numbers that JSON knows, and nothing twice after a rewind."""

import json

import pytest
import torch

from colocam.errors import ColocamError
from colocam.training.journal import Journal


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_wait_until_they_are_flushed(tmp_path):
    journal = Journal(tmp_path / "m.jsonl")
    journal.add("classifier", "train", 0, 1, loss=torch.tensor(0.123456789), note="ä", none=None, count=3)
    assert not journal.path.exists()
    length = journal.flush()
    assert length == journal.path.stat().st_size
    expected = {"phase": "classifier", "event": "train", "epoch": 0, "step": 1}
    assert lines(journal.path) == [{**expected, "loss": 0.123457, "note": "ä", "none": None, "count": 3}]
    assert journal.flush() == length


def test_what_json_does_not_know_becomes_null(tmp_path):
    journal = Journal(tmp_path / "m.jsonl")
    journal.add("p", "train", 0, 0, a=float("nan"), b=torch.tensor(float("inf")), c=-float("inf"), d=torch.tensor(7))
    journal.flush()
    (line,) = lines(journal.path)
    assert (line["a"], line["b"], line["c"], line["d"]) == (None, None, None, 7)
    assert "NaN" not in journal.path.read_text()


def test_rewinding_cuts_what_will_be_run_again(tmp_path):
    journal = Journal(tmp_path / "m.jsonl")
    journal.add("p", "train", 0, 0)
    length = journal.flush()
    journal.add("p", "train", 0, 1)
    journal.flush()
    journal.add("p", "train", 0, 2)
    journal.rewind(length)
    assert journal.path.stat().st_size == length
    journal.add("p", "train", 0, 7)
    assert journal.flush() == journal.path.stat().st_size
    assert [line["step"] for line in lines(journal.path)] == [0, 7]


def test_a_journal_that_someone_shortened_or_removed_grows_no_zeros(tmp_path):
    journal = Journal(tmp_path / "m.jsonl")
    journal.rewind(1000)
    assert journal.path.read_bytes() == b""
    journal.path.write_text('{"step": 1}\n')
    journal.rewind(1000)
    journal.add("p", "train", 0, 2)
    journal.flush()
    assert [line["step"] for line in lines(journal.path)] == [1, 2]


def test_a_folder_that_refuses_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ColocamError, match="there is a file where a folder is needed"):
        Journal(tmp_path / "file" / "m.jsonl").flush()
