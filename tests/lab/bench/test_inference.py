"""The bench of inference runs the commands that users call."""

import json
import sys

import pytest

from colocam.config import load_config
from lab.bench import inference, shipped


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    for module, name, value in (
        *((module, name, value) for module in (shipped, inference) for name, value in (("WIDTH", 64), ("HEIGHT", 48))),
        (shipped, "SCENES", 16),
        (inference, "LONG", 6),
        (inference, "SHORT", 3),
    ):
        monkeypatch.setattr(module, name, value)


def test_commands_limits_and_starts_are_measured_printed_and_written(tiny, tmp_path, capsys, monkeypatch):
    """One command is run; the others are asked with the words of a user."""
    asked = []

    def timed(name, words, videos, frames):
        asked.append((name, [str(word) for word in words]))
        found = run(name, words, videos, frames) if name == "4 × 3 frames" else None
        return found or {"steady_per_s": 3.0, "with_start_per_s": 2.0}

    run = inference._time_command
    monkeypatch.setattr(inference, "_time_command", timed)
    monkeypatch.setattr(inference, "time_process", lambda words, plain=inference.time_process: (
        inference.Timed(0.0, 0.0, 1.5) if "0:1" in words else plain(words)
    ))  # fmt: skip
    monkeypatch.setattr(inference, "load_config", lambda _: load_config(overrides=list(tiny)))
    result = inference.run("cpu", tmp_path / "inference.json", ["cpu"], videos=2)
    assert json.loads((tmp_path / "inference.json").read_text(encoding="utf-8")) == result
    (row,) = result["cases"]
    assert row["name"] == "preset cpu, random encoder, decoder fitted to these videos"
    stages = ["decode", "resize", "network", "post-processing", "boxes", "tables", "mp4"]
    assert list(row["limits_per_s"]) == stages
    assert all(rate > 0 for rate in row["limits_per_s"].values())
    assert (row["first_row_s"], row["latency_ms"] > 0) == (1.5, True)
    slowest = min(rate for stage, rate in row["limits_per_s"].items() if stage != "mp4")
    assert row["share_of_limit"] == pytest.approx(3.0 / slowest)
    long = ["2 × 6 frames", "2 × 6 frames, one look"]
    names = [*long, "4 × 3 frames", "1 × 6 frames, mp4", "1 × 6 frames", "1 × 4 frames, --refine"]
    assert [name for name, _ in asked] == [*names, "2 × 6 frames, label"]
    assert [words[0] for _, words in asked] == [*["localize"] * 6, "label"]
    assert ["--no-video" in words for _, words in asked] == [True, True, True, False, True, True, False]
    assert all(words[-2:] == ["--device", "cpu"] for _, words in asked)
    measured = row["commands"]["4 × 3 frames"]
    assert measured["with_start_per_s"] == pytest.approx(12 / measured["total_s"])
    assert measured["steady_per_s"] > measured["with_start_per_s"]
    assert 0 < measured["first_line_s"] < measured["total_s"]
    assert 0 < measured["first_table_s"] < measured["total_s"]
    printed = capsys.readouterr().out
    for words in ("limit: network", "4 × 3 frames", "frames/s with start; first line", "steady tables / slowest stage"):
        assert words in printed


def test_a_command_that_fails_says_why():
    with pytest.raises(RuntimeError, match="ended with 3: because"):
        inference.time_process([sys.executable, "-c", "import sys; print('because', file=sys.stderr); sys.exit(3)"])


def test_an_option_of_another_benchmark_is_refused(colocam):
    assert colocam("bench", "cam", "--videos", 3).error == (
        "error: the benchmark cam takes no videos: leave that option out"
    )
