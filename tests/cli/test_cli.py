"""The command line as a user meets it, with the input that users have: one clear line for what cannot be done."""

import errno
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch

from colocam.errors import ArgumentError, ColocamError
from colocam.utils.extras import EXTRAS, __version__
from colocam.video.fence import decode


@pytest.fixture
def two_tags(tmp_path, make_video, square_video):
    """A folder of two tags with two good videos each."""
    for tag in ("bus", "cat"):
        for number in range(2):
            make_video(tmp_path / "videos" / tag / f"good-{number}.mp4", square_video(tag, number)[0])
    return tmp_path / "videos"


@pytest.fixture
def train(colocam, tmp_path, tiny_training):
    """``train(videos, …)`` trains a tiny model into ``tmp_path/run``."""
    return lambda videos, *more: colocam("train", videos, "--out", tmp_path / "run", *tiny_training, *more)


def test_the_version_names_commit_and_engines(colocam):
    outcome = colocam("--version")
    root = Path(__file__).parents[2]
    clone = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    commit = rf" \(commit ({clone.stdout[:7]}[0-9a-f]*)(-dirty)?\)" if (root / ".git").exists() else ""
    first, second = outcome.out.splitlines()
    assert re.fullmatch(rf"colocam {re.escape(__version__)}{commit}", first)
    assert second == f"engine: onnxruntime {version('onnxruntime')}, torch {version('torch')}"


def test_a_bug_report_names_versions_and_no_file_of_the_user(colocam):
    report = colocam("--version", "--all")
    rows = dict(line.split(": ", 1) for line in report.out.splitlines()[1:])
    assert rows["Python"].startswith(platform.python_version())
    assert rows["torch"].startswith(torch.__version__)
    assert "CPUExecutionProvider" in rows["onnxruntime"]
    assert {f"extra {name}" for name in EXTRAS.values()} <= rows.keys()
    assert rows["extra train"] == "yes"
    assert not any(path in report.out for path in (str(Path.home()), str(Path.cwd()), sys.prefix))


def test_a_bug_report_names_what_is_missing(new_colocam):
    report = new_colocam("--version", "--all", absent=["torch", "fastapi"])
    assert report.code == 0
    assert "torch: not installed" in report.out
    assert "extra serve: no: fastapi not installed" in report.out


def test_all_without_version_is_refused(colocam):
    outcome = colocam("--all")
    assert outcome.code == 2
    assert "--all only works with --version" in outcome.err


# pipes

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
READS_A_FILE = [
    *(f"import PIPE --from {form} -o new.csv" for form in ("cvat", "coco", "label-studio", "mot", "csv")),
    "import labels.json --from coco --tables PIPE.csv -o new.csv",
    "import labels.json --from coco --tables boxes.csv --checked PIPE -o new.csv",
    "export boxes.csv --video PIPE.mp4 --to coco -o new",
    "export PIPE.csv --to coco -o new",
    "export PIPE.parquet --to coco -o new",
    "export described.csv --to coco -o new",
    "export piped.csv --to yolo --images -o new",
    "localize PIPE.onnx video.mp4 -o new",
    "label PIPE.onnx videos -o new",
    "label model.onnx PIPE.csv -o new",
    "localize model.onnx video.mp4 --refine PIPE.safetensors -o new",
    "localize piped-run video.mp4 -o new",
    "learn run PIPE.csv -o new",
    "train PIPE.csv --out new",
    "train clips.csv --out new",
    "train videos --config PIPE.yaml --out new",
    "train videos --boxes PIPE.csv --out new",
    "evaluate run --boxes PIPE.csv",
    "export-model run -o new.onnx --int8 PIPE.mp4",
    "score PIPE.csv --boxes tagged.csv",
    "score maps --boxes tagged.csv",
    "review PIPE.csv",
]


@pytest.fixture
def pipes(tmp_path, monkeypatch):
    """A folder with named pipes that nobody writes to; who waits for one for a minute gets its end."""
    monkeypatch.chdir(tmp_path)
    for path in STORED.iterdir():
        Path(path.name).symlink_to(path)
    shutil.copytree(STORED / "run", "piped-run")
    Path("piped-run/model.safetensors").unlink()
    Path("maps/clip").mkdir(parents=True)
    rows = "frame,x1,y1,x2,y2,class\n0,1,1,8,8,cat\n"
    for name in ("boxes", "described", "piped"):
        Path(f"{name}.csv").write_text(rows, encoding="utf-8")
    card = {"format": 1, "width": 64, "height": 48, "fps": "25", "frames": 9, "duration": 0.36}
    for name, video in (("boxes", "video.mp4"), ("piped", "PIPE.mp4")):
        Path(f"{name}.video.json").write_text(json.dumps({**card, "path": video}), encoding="utf-8")
    Path("clips.csv").write_text("path,tag\nPIPE.mp4,cat\nvideo.mp4,owl\n", encoding="utf-8")
    Path("tagged.csv").write_text("clip,frame,present,x1,y1,x2,y2,tag\nclip,0,1,1,1,8,8,cat\n", encoding="utf-8")
    Path("labels.json").write_text("{}", encoding="utf-8")
    found = [Path("PIPE"), Path("described.video.json"), Path("piped-run/model.safetensors"), Path("maps/clip/0.npy")]
    found += [Path(f"PIPE.{ending}") for ending in ("csv", "parquet", "mp4", "onnx", "safetensors", "yaml")]
    for path in found:
        os.mkfifo(path)

    blocked, ended = threading.Event(), threading.Event()

    def open_all() -> None:
        while not ended.wait(0.5 if blocked.is_set() else 60):
            blocked.set()
            for path in found:
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))

    opener = threading.Thread(target=open_all)
    opener.start()
    yield tmp_path
    ended.set()
    opener.join()
    assert not blocked.is_set()


@pytest.mark.usefixtures("pipes")
@pytest.mark.parametrize("words", READS_A_FILE)
def test_a_pipe_in_place_of_a_file_is_refused(colocam, words):
    """To read it would never end."""
    error = colocam(*words.split()).error
    assert "it is a pipe or a device" in error
    assert re.search(r"PIPE|described.video.json|model.safetensors|0.npy", error)


def test_a_pipe_among_videos_does_not_block_the_others(colocam, pipes):
    (pipes / "folder").mkdir()
    (pipes / "folder" / "video.mp4").write_bytes((STORED / "video.mp4").read_bytes())
    os.mkfifo(pipes / "folder" / "video.video.json")
    done = colocam("localize", "model.onnx", "folder", "-o", "new", "--no-video", "--frames", ":2")
    assert (done.code, [path.name for path in Path("new").glob("*.csv")]) == (0, ["video.csv"]), done.err


# what is wrong with the videos


def test_missing_folder(train, tmp_path):
    error = train(tmp_path / "nothing here").error
    assert f"{tmp_path / 'nothing here'}: there is no such folder or manifest" in error
    assert not (tmp_path / "run").exists()


def test_empty_folder(train, tmp_path):
    (tmp_path / "videos").mkdir()
    assert "put the videos into one folder per tag" in train(tmp_path / "videos").error
    (tmp_path / "videos" / "cat").mkdir()
    assert f"{tmp_path / 'videos' / 'cat'} contains no video" in train(tmp_path / "videos").error
    assert not (tmp_path / "run").exists()


def test_a_single_video_in_place_of_a_folder(train, tmp_path, make_video):
    assert "give a folder of tagged videos, or a manifest" in train(make_video(tmp_path / "one.mp4")).error


def test_one_class_only(train, tmp_path, two_tags):
    shutil.rmtree(two_tags / "cat")
    assert "the only tag is 'bus': training needs at least two tags" in train(two_tags).error
    assert not (tmp_path / "run").exists()


def test_a_tag_with_a_single_video(train, tmp_path, two_tags):
    (two_tags / "cat" / "good-1.mp4").unlink()
    error = train(two_tags).error
    assert "the tag 'cat' has a single video (cat/good-0)" in error
    assert "add another" in error
    assert not (tmp_path / "run").exists()


def test_unreadable_files_are_skipped_and_counted(train, tmp_path, two_tags):
    good = (two_tags / "cat" / "good-0.mp4").read_bytes()
    bad = {"empty.mp4": b"", "cut.mp4": good[: len(good) // 3], "text.mp4": b"no video\n" * 99, "pad": bytes(5000)}
    for name, content in bad.items():
        (two_tags / "cat" / name).write_bytes(content)
    (two_tags / "cat" / "notes.txt").write_text("not even a candidate", encoding="utf-8")
    manifest = ["path,tag,split"]
    for path in sorted(two_tags.rglob("*")):
        if path.is_file() and path.suffix != ".txt":
            split = "val" if path.name == "good-1.mp4" else "train"
            manifest.append(f"videos/{path.relative_to(two_tags)},{path.parent.name},{split}")
    (tmp_path / "manifest.csv").write_text("\n".join(manifest), encoding="utf-8")
    outcome = train(tmp_path / "manifest.csv")
    assert outcome.code == 0
    for name in bad:
        lines = [line for line in outcome.err.splitlines() if str(two_tags / "cat" / name) in line]
        assert len(lines) == 1
        assert lines[0].startswith(f"warning: skipped videos/cat/{Path(name).stem}: cannot read ")
    assert "warning: 4 of 8 clips cannot be read and are skipped" in outcome.err
    assert "notes.txt" not in outcome.err
    assert f"trained: {tmp_path / 'run' / 'model.json'}; now: colocam localize" in outcome.err


def test_a_tag_whose_training_videos_are_all_unreadable(train, tmp_path, two_tags):
    for path in (two_tags / "cat").iterdir():
        path.write_bytes(b"")
    outcome = train(two_tags)
    assert "the tag 'cat' has no readable training video: see the warnings above" in outcome.error
    assert outcome.err.count("warning: skipped cat/good-") == 2
    assert not (tmp_path / "run" / "model.json").exists()


def test_nothing_readable_at_all(train, two_tags):
    for path in two_tags.rglob("*.mp4"):
        path.write_bytes(b"?" * 1000)
    assert "no clip can be read" in train(two_tags).error


def test_every_kind_of_odd_video_trains_and_localizes(colocam, train, tmp_path, make_video, square_video, quadrants):
    """One frame, fewer than n frames, odd sizes, variable rate, rotation, alpha, 10 bits, sound first, none; names."""
    videos = tmp_path / "my videos"
    kinds = {
        "one frame": {"frames": square_video("cat", 1, 1)[0]},
        "two frames": {"frames": square_video("cat", 2, 2)[0]},
        "odd size": {"frames": square_video("cat", 3, 4, (51, 37))[0], "pix_fmt": "yuv444p"},
        "variable rate": {"frames": square_video("cat", 4, 4)[0], "times": [0.5, 0.51, 1.0, 3.0]},
        "rotated": {"frames": square_video("cat", 5, 4)[0], "rotation": 90},
        "10 bit": {"frames": square_video("cat", 6, 4)[0], "pix_fmt": "yuv420p10le"},
        "sound first": {"frames": square_video("cat", 7, 4)[0], "audio": "first"},
        "with 'quotes' \"and\" %d": {"frames": square_video("cat", 8, 4)[0]},
        "кошка 猫 ñ": {"frames": square_video("cat", 9, 4)[0], "audio": "last"},
    }
    tags = ('un "chat" d\'or', "собака")
    for number, (name, options) in enumerate(kinds.items()):
        make_video(videos / tags[number % 2] / f"{name}.mp4", **options)
    alpha = [np.dstack([quadrants(), np.full((48, 64), 128, np.uint8)])] * 3
    make_video(videos / tags[1] / "alpha.mov", alpha, codec="qtrle", pix_fmt="argb")
    outcome = train(videos)
    assert outcome.code == 0, outcome.err
    assert "warning: skipped" not in outcome.err
    card = json.loads((tmp_path / "run" / "model.json").read_text(encoding="utf-8"))
    assert card["tags"] == list(tags)
    for name in ("rotated.mp4", "one frame.mp4", "кошка 猫 ñ.mp4", "alpha.mov"):
        (video,) = videos.glob(f"*/{name}")
        outcome = colocam("localize", tmp_path / "run", video, "-o", tmp_path / "output folder")
        assert outcome.code == 0, outcome.err
        drawn = list(decode(tmp_path / "output folder" / f"{video.stem}.mp4"))
        original = list(decode(video))
        assert [frame.image.shape for frame in drawn] == [frame.image.shape for frame in original]
        rows = (tmp_path / "output folder" / f"{video.stem}.csv").read_text(encoding="utf-8").splitlines()
        assert len(rows) == 1 + len(original)


# where the results should go


def test_output_below_a_file(train, tmp_path, two_tags):
    (tmp_path / "run").write_text("a file", encoding="utf-8")
    error = train(two_tags).error
    assert f"cannot write {tmp_path / 'run'}: there is a file where a folder is needed: choose another output" in error
    assert (tmp_path / "run").read_text(encoding="utf-8") == "a file"


def test_output_where_nobody_may_write(colocam, two_tags, tiny_training):
    outcome = colocam("train", two_tags, "--out", "/proc/run", *tiny_training)
    assert "/proc/run" in outcome.error


def test_a_folder_that_is_no_run(train, tmp_path, two_tags):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious", encoding="utf-8")
    assert "is not empty and not a run folder: choose another folder" in train(two_tags).error
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_a_run_of_another_configuration(colocam, trained, collection, frame_cache, tiny_training):
    arguments = ["train", collection.manifest, "--out", trained, "--frames", frame_cache, *tiny_training]
    before = (trained / "config.yaml").read_bytes()
    methods = ["--set", "methods=[colocam, fcam]"]
    error = colocam(*arguments, *methods, "--set", "localizer.losses.coloc=3").error
    assert (
        f"{trained} contains a run with a different configuration (localizer.losses.coloc: 1.0 there, 3.0 now)" in error
    )
    error = colocam(*arguments, *methods, "--set", "backbone.args={drop_rate: 0.1}").error
    assert "(backbone.args.drop_rate: not set there, 0.1 now): choose another folder or delete it" in error
    assert "(methods: " in colocam(*arguments).error
    assert (trained / "config.yaml").read_bytes() == before


def test_a_run_of_other_videos_or_boxes(colocam, trained, collection, frame_cache, tiny_training, two_tags):
    same = ["--out", trained, "--frames", frame_cache, *tiny_training, "--set", "methods=[colocam, fcam]"]
    assert f"{trained} contains a run on different videos or boxes" in colocam("train", two_tags, *same).error
    with_boxes = colocam("train", collection.manifest, *same, "--boxes", collection.truth)
    assert f"{trained} contains a run on different videos or boxes" in with_boxes.error


def refused_by_a_full_disk(command, target, colocam, full_disk) -> None:
    full_disk(target.name)
    error = colocam(*command).error
    assert error == f"error: cannot write {target}: the disk is full: free some space and run the same command again"
    assert not target.exists()
    assert not list(target.parents[1].rglob(".*"))
    full_disk("")


def test_a_full_disk_at_the_start_and_then_the_same_command(
    colocam, collection, frame_cache, tiny_training, trained, tmp_path, full_disk
):
    run = tmp_path / "run"
    command = [
        "train",
        collection.manifest,
        "--out",
        run,
        "--frames",
        frame_cache,
        *tiny_training,
        "--set",
        "methods=[]",
    ]
    refused_by_a_full_disk(command, run / "data.json", colocam, full_disk)
    assert not (run / "config.yaml").exists()
    outcome = colocam(*command)
    assert outcome.code == 0
    assert f"trained: {run / 'classifier'} only, since 'methods' is empty; now: colocam evaluate" in outcome.err
    assert (run / "classifier" / "cams.npy").read_bytes() == (trained / "classifier" / "cams.npy").read_bytes()


def test_a_full_disk_for_the_cams_and_then_the_same_command(
    colocam, collection, frame_cache, tiny_training, trained, tmp_path, full_disk
):
    run = tmp_path / "run"
    command = ["train", collection.manifest, "--out", run, "--frames", frame_cache, *tiny_training]
    command += ["--set", "methods=[colocam, fcam]"]
    shutil.copytree(trained, run, ignore=shutil.ignore_patterns("cams.*", "model.*", "fcam"))
    lines = (trained / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    before = [line for line in lines if json.loads(line)["phase"] != "fcam"]
    (run / "metrics.jsonl").write_text("".join(before), encoding="utf-8")
    refused_by_a_full_disk(command, run / "classifier" / "cams.npy", colocam, full_disk)
    assert not (run / "model.json").exists()
    assert colocam(*command).code == 0
    for name in ("model.safetensors", "metrics.jsonl", "classifier/cams.npy", "fcam/model.safetensors"):
        assert (run / name).read_bytes() == (trained / name).read_bytes()


def test_a_full_disk_for_the_results_of_an_evaluation(colocam, collection, own_run, full_disk):
    full_disk("cases.npz")
    error = colocam("evaluate", own_run, "--boxes", collection.truth).error
    assert f"cannot write {own_run / 'cases.npz'}: the disk is full" in error
    assert not (own_run / "cases.npz").exists()


@pytest.mark.parametrize("suffix", ["mp4", "csv", "parquet"])
def test_a_full_disk_for_the_results_of_a_video(colocam, trained, tmp_path, make_video, suffix, full_disk):
    video, out = make_video(tmp_path / "video.mp4", 12), tmp_path / "out"
    out.mkdir()
    full_disk(f"video.{suffix}")
    table = "parquet" if suffix == "parquet" else "csv"
    outcome = colocam("localize", trained, video, "-o", out, "--table", table)
    assert f"cannot write {out / 'video'}.{suffix}: the disk is full" in outcome.error
    assert not (out / f"video.{suffix}").exists()
    assert not list(out.glob(".*"))


def test_a_disk_too_small_for_the_frames(train, two_tags, monkeypatch):
    usage = shutil.disk_usage(two_tags)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    error = train(two_tags).error
    assert "the frame cache needs about" in error
    assert "free some space" in error


# what is wrong with the command


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--set", "localizer.epoch=3"], "did you mean 'localizer.epochs'?"),
        (["--set", "localizer"], "--set localizer: write it as key.subkey=value"),
        (["--preset", "papr"], "did you mean 'paper'?"),
        (["--config", "no.yaml"], "no configuration file at no.yaml"),
        (["--device", "toaster"], "--device must be cpu or cuda, got toaster"),
        (["--device", "cuda:77"], "--device cuda:77: torch finds no such GPU"),
        (["--boxes", "no.csv"], "cannot read no.csv: there is no such file"),
        (["--set", "backbone.name=resnet10x"], "did you mean "),
        (["--set", "localizer.decoder=[8, 8]"], "localizer.decoder has 2 channel numbers"),
    ],
)
def test_wrong_options_of_train(train, collection, tmp_path, more, told):
    assert told in train(collection.manifest, *more).error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--split", "tset"], "--split must be one of train, val, test, got tset"),
        (["--boxes", "no.csv"], "cannot read no.csv: there is no such file"),
        (["--device", "toaster"], "must be cpu or cuda"),
        (["--cams", "layercam,gradcam+"], "no CAM method 'gradcam+': did you mean 'gradcam++'?"),
        (["--cams", ""], "no CAM method '': valid are cam, gradcam, "),
    ],
)
def test_wrong_options_of_evaluate(colocam, trained, collection, more, told):
    assert told in colocam("evaluate", trained, "--boxes", collection.truth, *more).error


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("cam, layercam", ["LayerCAM", "CAM"]),
        ("all", ["LayerCAM", "CAM", "GradCAM", "GradCAM++", "Smooth-GradCAM++", "XGradCAM"]),
    ],
)
def test_cams_side_by_side(colocam, own_run, collection, monkeypatch, named, shown):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = colocam("evaluate", own_run, "--boxes", collection.truth, "--cams", named)
    assert outcome.code == 0
    heads = [line for line in outcome.out.splitlines() if line.startswith("┃")]
    titles = [cell.strip() for line in heads for cell in line.strip("┃").split("┃")]
    assert [title for title in titles if title] == [*shown, "F-CAM", "CoLo-CAM"]
    assert max(len(line) for line in outcome.out.splitlines() if line[:1] in "┏┃┡│├└") <= 80
    if named == "all":
        assert f"wrote {own_run / 'report' / 'index.html'}" in colocam("report", own_run).err
        page = (own_run / "report" / "index.html").read_text(encoding="utf-8")
        assert "Gain over LayerCAM" in page
        assert all(title in page for title in shown)


@pytest.mark.parametrize("command", ["evaluate", "localize", "report"])
def test_commands_on_folders_that_are_no_runs(colocam, tmp_path, collection, make_video, command):
    arguments = {
        "evaluate": ["--boxes", collection.truth],
        "localize": [make_video(tmp_path / "video.mp4"), "-o", tmp_path / "out"],
        "report": [],
    }[command]
    for run in (tmp_path, tmp_path / "missing")[command == "localize" :]:  # a folder may be one of videos there
        assert str(run) in colocam(command, run, *arguments).error
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "missing").exists()


def test_an_unfinished_run(colocam, trained, tmp_path, collection, make_video):
    run = tmp_path / "run"
    run.mkdir()
    for name in ("config.yaml", "data.json", "environment.json"):
        shutil.copy(trained / name, run)
    assert "finish 'colocam train' first" in colocam("evaluate", run, "--boxes", collection.truth).error
    video = make_video(tmp_path / "video.mp4")
    assert "finish 'colocam train' first" in colocam("localize", run, video, "-o", tmp_path / "out").error
    assert not (tmp_path / "out").exists()


def test_ctrl_c_in_any_command(colocam, trained, collection, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("colocam.evaluation.run_evaluation.evaluate", interrupted)
    outcome = colocam("evaluate", trained, "--boxes", collection.truth)
    assert (outcome.code, outcome.err) == (130, "stopped\n")


def test_what_the_system_refuses_is_one_line(colocam, trained, collection, monkeypatch):
    def refused(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", "truth.csv")

    monkeypatch.setattr("colocam.evaluation.run_evaluation.evaluate", refused)
    assert "truth.csv: Permission denied" in colocam("evaluate", trained, "--boxes", collection.truth).error


def test_an_unknown_benchmark(colocam):
    assert "no benchmark 'speed'" in colocam("bench", "speed").error


@pytest.mark.parametrize(("there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_benchmarks_run_on_the_gpu_if_there_is_one(colocam, monkeypatch, there, expected):
    asked = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: there)
    monkeypatch.setattr("lab.bench.cam.run", lambda device, _: asked.append(device))
    assert colocam("bench", "cam").code == 0
    assert colocam("bench", "cam", "--device", "cpu").code == 0
    assert asked == [expected, "cpu"]


# as in a new process


def colocam_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("colocam")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_help_lists_every_command(new_colocam):
    outcome = new_colocam("--help")
    assert outcome.code == 0
    for command in ("demo", "train", "evaluate", "score", "localize", "export", "export-model", "bench"):
        assert f" {command} " in outcome.out


def test_errors_name_options_as_they_are_typed(colocam, tmp_path, monkeypatch):
    """Arguments at the start of an error and between backticks become options; words of file names do not."""

    def raising(error):
        def run(*_args, **_options):
            raise error

        monkeypatch.setattr("colocam.labels.export", run)
        return colocam("export", tmp_path / "a.csv", "--to", "coco", "-o", tmp_path / "out").error

    assert raising(ArgumentError("videos", "are too many")) == "error: --video are too many"
    assert raising(ColocamError("tolerance must be 0")) == "error: --tolerance must be 0"
    assert raising(ColocamError("x.csv: give `videos`, `out` or `none`")) == (
        "error: x.csv: give --video, --out or `none`"
    )
    assert raising(ColocamError("out dir/images: there is no file")) == "error: out dir/images: there is no file"


def test_shell_completion_offers_commands(monkeypatch):
    monkeypatch.setenv("_COLOCAM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "colocam exp")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert colocam_process().stdout.split() == ["export", "export-model"]


def test_a_real_process_fails_in_one_line(tmp_path):
    process = colocam_process("export", tmp_path / "no.csv", "--to", "coco", "-o", tmp_path / "out")
    assert process.returncode == 1
    assert process.stdout == ""
    assert process.stderr == f"error: cannot read {tmp_path / 'no.csv'}: there is no such file\n"


def test_a_missing_argument_shows_the_usage(new_colocam):
    outcome = new_colocam("train")
    assert outcome.code == 2
    assert "Missing argument" in outcome.err
    assert "Traceback" not in outcome.err


def test_training_may_end_with_a_measurement_and_the_report(
    colocam, own_run, collection, frame_cache, tiny_training, tmp_path
):
    command = ["train", collection.manifest, "--out", own_run, "--frames", frame_cache, *tiny_training]
    command += ["--set", "methods=[colocam, fcam]"]
    outcome = colocam(*command, "--test-boxes", collection.truth)
    assert outcome.code == 0
    assert "tags-only" in outcome.out
    assert json.loads((own_run / "evaluation.json").read_text(encoding="utf-8"))["data"]["split"] == "test"
    assert "<html" in (own_run / "report" / "index.html").read_text(encoding="utf-8")
    missing = colocam(*command, "--test-boxes", tmp_path / "none.csv")
    assert missing.code != 0
    assert f"{tmp_path / 'none.csv'}: there is no such file" in missing.error
