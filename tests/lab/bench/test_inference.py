"""The bench of inference runs the product's own stages, and needs no FFmpeg for what it computes in memory."""

import importlib
import json
import sys
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from colocam.inference.pass_filler import GROUP, PassFiller

from colocam.config import load_config
from colocam.inference.network import NetworkOutput, OutputShape, completed
from lab.bench import films, inference


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(inference, "SCENES", 6)
    monkeypatch.setattr(inference, "WIDTH", 64)
    monkeypatch.setattr(inference, "HEIGHT", 48)


@pytest.mark.usefixtures("short")
def test_all_of_it_is_measured_printed_and_written(tiny, tmp_path, capsys):
    result = inference.run(
        "cpu", tmp_path / "inference.json", {"tiny": load_config(overrides=list(tiny))}, frames=20, films=0
    )
    assert json.loads((tmp_path / "inference.json").read_text(encoding="utf-8")) == result
    (row,) = result["cases"]
    assert (row["name"], row["size"], row["batch"]) == ("tiny", 32, 32)
    assert row["ratio"] == pytest.approx(row["boxes_per_s"] / row["plain_loop_per_s"])
    assert set(row["parts_ms"]) == {"decode", "resize", "copy", "network", "boxes", "write"}
    rates = (
        "network_per_s",
        "boxes_per_s",
        "steady_boxes_per_s",
        "color_mean_boxes_per_s",
        "plain_loop_per_s",
        "latency_ms",
    )
    assert all(row[rate] > 0 for rate in (*rates, "latency_ms"))
    printed = capsys.readouterr().out
    for words in ("network alone", "plain loop over single frames", "latency of one frame", "decode ", "write "):
        assert words in printed


@pytest.mark.usefixtures("short")
def test_the_boxes_are_those_of_a_blob_and_the_plain_loop_sees_every_frame(tiny, monkeypatch):
    """Maps stand in for trained ones, but the network is asked all the same."""
    boxes, pictures = [], []
    plain, submit = inference.largest_boxes, inference.TorchNetwork.submit
    monkeypatch.setattr(inference, "largest_boxes", lambda *args: boxes.append(plain(*args)) or boxes[-1])
    monkeypatch.setattr(
        inference.TorchNetwork,
        "submit",
        lambda self, given: pictures.append(len(given)) or submit(self, given),
    )
    inference.run("cpu", None, {"tiny": load_config(overrides=list(tiny))}, frames=20, films=0)
    assert len(boxes) == 4 * 5  # warm, then three times a quarter of the frames
    streams = [count for count in pictures if count != 1]
    assert set(streams) == {32}  # passes have a fixed number of rows
    assert len(streams) >= 24 + 3 * 4  # the network alone, then three streams of one pass, warm and three times
    assert pictures.count(1) == 6  # one frame, warm and timed


@pytest.mark.parametrize("uneven", [False, True])
def test_films_share_passes_in_the_bench_where_they_share_those_of_the_network(uneven):
    """Otherwise each film is measured with passes of its own, mostly empty, or with passes that the command has not."""

    class Still:
        device, rows, on_gpu = torch.device("cpu"), 4 * GROUP, False

        def submit(self, images):
            rows = np.arange(len(images), dtype=np.float32)[:, None] * uneven
            return completed(NetworkOutput(rows, rows, rows, rows, images))

        def settle(self):
            pass

    filler = PassFiller(inference._Blobs(Still(), 16), Still.rows, OutputShape(1, 16, 16))
    filler.close()
    assert filler.group == (Still.rows if uneven else GROUP)


def test_without_ffmpeg_its_stages_are_left_out(fresh_modules, monkeypatch):
    """Without PyAV, or with a stand-in for it, the module is imported, and files are not measured."""
    with fresh_modules("av", "pyarrow", "rich"):
        for name in [name for name in sys.modules if name.partition(".")[0] == "lab"]:
            monkeypatch.delitem(sys.modules, name)
        fresh = importlib.import_module("lab.bench.inference")
        assert fresh is not inference
        assert not fresh._has_ffmpeg()
        for name in ("", ".container", ".sidedata.sidedata", ".stream", ".video.reformatter", ".video.stream"):
            monkeypatch.setitem(sys.modules, f"av{name}", MagicMock(__version__="18.0"))
        assert not fresh._has_ffmpeg()
        assert "colocam.video.writer" in sys.modules
        monkeypatch.undo()


def test_networks_of_a_gpu():
    strides = [config.backbone.output_stride for config in inference._configs(torch.device("cuda")).values()]
    assert strides == [8, 32]


def test_with_pyav_files_are_measured():
    assert inference._has_ffmpeg()


@pytest.mark.usefixtures("short")
def test_films_are_measured_from_their_files(tiny, monkeypatch, capsys):
    """The stages of the product, in worker processes; a ratio is that of the numbers beside it."""
    monkeypatch.setattr(films, "LONG", 9)
    monkeypatch.setattr(films, "SHORT", 3)
    monkeypatch.setattr(films, "TURNS", 1)
    monkeypatch.setattr(films, "most_workers", lambda _: 1)
    measure, rates = films._rate, []

    def rate(localizer, folder, frames, *, annotate):  # one of the three is enough
        rates.append((folder.name, frames, annotate))
        return measure(localizer, folder, frames, annotate=annotate) if folder.name == "short" else 7.0

    monkeypatch.setattr(films, "_rate", rate)
    configs = {"tiny": load_config(overrides=list(tiny))}
    row = inference.run("cpu", None, configs, frames=20, films=2)["cases"][0]["films"]
    assert rates == [("long", 18, False), ("short", 6, False), ("drawn", 18, True)]
    assert (row["films"], row["workers"]) == (2, 1)
    assert all(row[key] > 0 for key in ("decoder_per_s", "thread_per_s", "fence_cost", "videos_per_s"))
    assert row["short_cost"] == pytest.approx(row["tables_per_s"] / row["short_tables_per_s"])
    assert row["share_of_limit"] == pytest.approx(row["tables_per_s"] / min(row["limits_per_s"].values()))
    assert "films to tables and mp4" in capsys.readouterr().out
