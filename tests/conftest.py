"""Fixtures of all rooms: real video files, small and quick to make, and a small model trained on some."""

import atexit
import fcntl
import gc
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import av
import numpy as np
import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from colocam.cli import main
from colocam.config import Backbone, load_config
from colocam.utils.locks import temporary_file

# A verdict must not hang on how busy the machine is, nor on a draw that nobody can repeat;
# --hypothesis-profile=explore draws other examples every time.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True, max_examples=50)
settings.load_profile("steady")

atexit.register(gc.unfreeze)  # compiled modules complain at the end of the process if they are not freed


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules are imported, a third of that time, and none among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# What modules share, a process or an import of seconds, is started or imported by one worker alone.
TOGETHER = {
    "cams/clip": "clip",
    "lab/study": "study",
    "segment/test_mobile_sam.py": "clip",
    "serve": "serve",
    "training/test_processes.py": "processes",
    "training/test_resume.py": "processes",
}

# The longest modules and folders first, so that no worker is left with one at the end. The first of all builds the
# shared run and compiles for it; meanwhile the other worker runs the next three, which need neither.
LONGEST = (
    "cli/test_cli.py",
    "test_triton_interpreter.py",
    "models/test_backbones.py",
    "models/test_networks.py",
    "config/presets/",
    "serve/",
    "lab/study/test_studies.py",
    "training/test_resume.py",
    "training/test_processes.py",
    "fuzz/",
    "inference/test_onnx_export.py",
    "training/test_train.py",
    "training/test_frozen_encoder.py",
    "cams/clip/",
    "lab/study/test_runner.py",
    "losses/affinity/test_accuracy.py",
    "utils/extensions/",
    "video/test_fence.py",
    "demo/test_run_demo.py",
    "inference/",
    "evaluation/",
    "training/",
    "lab/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the modules by how long they take."""
    root = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(root).as_posix()
        return next((i for i, start in enumerate(LONGEST) if path.startswith(start)), len(LONGEST))

    items.sort(key=place)


class ByModule(LoadScopeScheduling):
    """A worker takes a module, or modules that share something, at a time."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0].removeprefix("tests/")
        return next((shared for start, shared in TOGETHER.items() if path.startswith(start)), path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByModule:
    return ByModule(config, log)


BROWSER = ("Chromium is not installed", "Playwright is not installed")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Say in the last line that tests of the page were skipped: among hundreds of dots nobody sees it."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")  # a worker has none
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if count := sum(str(report.longrepr[2]).endswith(BROWSER) for report in skipped):
        reporter.write_line(
            f"tests of the page skipped: {count}; to run them: apt install chromium, pip install playwright"
        )
    return result


@contextmanager
def untraced() -> Iterator[None]:
    """Pause coverage: it makes PyTorch's exporter twice as slow."""
    stopped = []
    while (traced := Coverage.current()) is not None:  # pytest-cov starts two in a worker
        traced.stop()
        stopped.append(traced)
    try:
        yield
    finally:
        for traced in reversed(stopped):
            traced.start()


@contextmanager
def fresh_modules(*absent: str) -> Iterator[None]:
    """Import colocam anew in the block, as a new process does, where the packages ``absent`` cannot be imported."""
    packages = {"colocam", *absent}

    def take() -> dict[str, ModuleType]:
        names = [name for name in sys.modules if name.partition(".")[0] in packages]
        return {name: sys.modules.pop(name) for name in names}

    before = take()
    sys.modules.update(dict.fromkeys(absent))  # None: importing it fails
    try:
        yield
    finally:
        take()
        sys.modules.update(before)


def quadrants(width: int = 64, height: int = 48) -> np.ndarray:
    """Red, green / blue, white: every rotation and mirroring of it looks different."""
    image = np.empty((height, width, 3), np.uint8)
    image[: height // 2, : width // 2] = (255, 0, 0)
    image[: height // 2, width // 2 :] = (0, 255, 0)
    image[height // 2 :, : width // 2] = (0, 0, 255)
    image[height // 2 :, width // 2 :] = 255
    return image


def numbered(count: int, width: int = 64, height: int = 48) -> list[np.ndarray]:
    """Frames whose number is their gray level: frame i is 10 + 4·i everywhere (count ≤ 60)."""
    return [np.full((height, width, 3), 10 + 4 * number, np.uint8) for number in range(count)]


def number_of(image: np.ndarray) -> int:
    """Which of the :func:`numbered` frames this is, after lossy coding."""
    return round((float(image.mean()) - 10) / 4)


@pytest.fixture(name="quadrants")
def quadrants_fixture():
    return quadrants


@pytest.fixture(name="numbered")
def numbered_fixture():
    return numbered


@pytest.fixture(name="number_of")
def number_of_fixture():
    return number_of


@pytest.fixture(scope="session")
def make_video():
    """``make_video(path, frames, size=(w, h), …)`` writes a video file and returns its path.

    ``frames`` is a number of :func:`numbered` frames or a list of (H, W, 3) or (H, W, 4) uint8 pictures. ``times`` are
    presentation times in seconds (milliseconds are kept), ``rotation`` counter-clockwise degrees of display
    metadata, ``shape`` the width of a pixel by its height, ``audio`` "first" or "last" adds a silent track before or
    after the video.
    """
    return _make_video


def _make_video(
    path,
    frames=10,
    size=(64, 48),
    fps=25,
    *,
    codec="libx264",
    pix_fmt="yuv420p",
    times=None,
    rotation=None,
    mirrored=False,
    shape=None,
    audio=None,
    options=None,
    container=None,
):
    pictures = numbered(frames, *size) if isinstance(frames, int) else list(frames)
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", container_options=container or {}) as output:
        sound = output.add_stream("aac", rate=16000, layout="mono") if audio == "first" else None
        stream = output.add_stream(codec, rate=fps, options=options or {})
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = pix_fmt
        stream.codec_context.thread_count = 1
        if shape is not None:
            stream.codec_context.sample_aspect_ratio = shape
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if rotation is not None:
            stream.set_display_rotation(rotation, hflip=mirrored)
        if audio == "last":
            sound = output.add_stream("aac", rate=16000, layout="mono")
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(
                np.ascontiguousarray(picture), "rgba" if picture.shape[2] == 4 else "rgb24"
            )
            if times is not None:
                frame.pts, frame.time_base = round(times[number] * 1000), Fraction(1, 1000)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
        if sound is not None:
            for block in range(10):
                silence = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
                silence.rate, silence.pts = 16000, 1024 * block
                output.mux(sound.encode(silence))
            output.mux(sound.encode(None))
    return path


TAGS = ("bus", "cat", "owl")
COLORS = {"bus": (220, 60, 40), "cat": (60, 200, 80), "owl": (70, 90, 230)}
TINY = (
    "frames.resize=36",
    "frames.crop=32",
    "frames.per_val_clip=3",
    "backbone.args={channels: [8, 8, 8, 8], stem_type: deep, stem_width: 4}",
    "classifier.epochs=2",
    "classifier.batch=4",
    "classifier.frames_per_clip=2",
    "localizer.epochs=2",
    "localizer.batch=6",
    "localizer.frames=3",
    "localizer.decoder=[8, 8, 8, 8, 8]",
    "localizer.seeds.foreground=20",
    "localizer.seeds.background=20",
    "localizer.color_mean=off",
)


class Collection(NamedTuple):
    """Tagged videos: ``videos/<tag>/<split>-<number>.mp4``, with their manifest and their true boxes."""

    videos: Path
    manifest: Path
    truth: Path


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """Its one line of error."""
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, self.err
        assert self.code == 1
        assert "Traceback" not in self.err
        assert self.err.splitlines()[-1] == lines[0]
        return lines[0]


def square_video(tag: str, seed: int, frames: int = 5, size: tuple[int, int] = (48, 40)):
    """Pictures of a colored square that moves over noise, absent in the first one, and its boxes."""
    rng = np.random.default_rng([seed, TAGS.index(tag)])
    width, height = size
    side, x, y = 16, rng.integers(0, width - 24), rng.integers(0, height - 20)
    pictures, boxes = [], []
    for number in range(frames):
        picture = rng.integers(90, 140, (height, width, 3)).astype(np.uint8)
        if number:
            picture[y : y + side, x + number : x + number + side] = COLORS[tag]
        pictures.append(picture)
        boxes.append((x + number, y, x + number + side, y + side) if number else None)
    return pictures, boxes


def make_collection(folder: Path, videos: dict[str, int]) -> Collection:
    manifest, truth = ["path,tag,split,clip"], ["clip,frame,present,x1,y1,x2,y2"]
    for tag in TAGS:
        for place, split in enumerate(videos):
            for number in range(videos[split]):
                clip = f"{tag}/{split}-{number}"
                pictures, boxes = square_video(tag, 10 * place + number)
                _make_video(folder / "videos" / f"{clip}.mp4", pictures)
                manifest.append(f"videos/{clip}.mp4,{tag},{split},{clip}")
                for frame, box in enumerate(boxes):
                    corners = ",".join(map(str, box)) if box else ",,,"
                    truth.append(f"{clip},{frame},{int(box is not None)},{corners}")
    (folder / "manifest.csv").write_text("\n".join(manifest) + "\n", encoding="utf-8")
    (folder / "truth.csv").write_text("\n".join(truth) + "\n", encoding="utf-8")
    return Collection(folder / "videos", folder / "manifest.csv", folder / "truth.csv")


@pytest.fixture(name="square_video", scope="session")
def square_video_fixture():
    return square_video


@pytest.fixture(scope="session")
def tiny() -> tuple[str, ...]:
    """Overrides of the preset ``cpu`` for a model that trains in a second."""
    return TINY


@pytest.fixture(scope="session")
def tiny_sets() -> list[str]:
    """The same for the command line."""
    return [word for override in TINY for word in ("--set", override)]


@pytest.fixture(name="fresh_modules", scope="session")
def fresh_modules_fixture():
    return fresh_modules


@pytest.fixture(name="untraced", scope="session")
def untraced_fixture():
    return untraced


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """``shared(name, build)`` is a folder for all workers; the first that asks for it calls ``build(folder)``.

    Read only. What coverage would see in ``build`` is not counted.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def get(name: str, build: Callable[[Path], object]) -> Path:
        folder, built = root / name, root / f"{name}-built"
        with (root / f"{name}-lock").open("w") as lock, untraced():
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                build(folder)
                built.touch()
        return folder

    return get


@pytest.fixture(scope="session")
def collection(shared) -> Collection:
    """Three tags with 2 training, 1 validation and 1 test video each; read only."""
    folder = shared("collection", lambda folder: make_collection(folder, {"train": 2, "val": 1, "test": 1}))
    return Collection(folder / "videos", folder / "manifest.csv", folder / "truth.csv")


def train_tiny(folder: Path, collection: Collection) -> None:
    from colocam.training import train  # noqa: PLC0415 - torch only for those who need it

    config = load_config(overrides=[*TINY, "methods=[colocam, fcam]"])
    train(collection.manifest, folder / "run", config, frames=folder / "frames")


@pytest.fixture(scope="session")
def training(shared, collection) -> Path:
    """Folder with the frames and the run of a training."""
    pytest.importorskip("torch", reason="needs the extra [train]")
    return shared("training", lambda folder: train_tiny(folder, collection))


@pytest.fixture(scope="session")
def frame_cache(training) -> Path:
    """The collection's decoded frames, shared by all runs."""
    return training / "frames"


@pytest.fixture(scope="session")
def train_into(collection, frame_cache):
    """``train_into(folder, override, …)`` trains a tiny model on the collection; gives the folder."""
    from colocam.training import train  # noqa: PLC0415

    def run(folder: Path, *overrides: str, source: Path = collection.manifest, **options: object) -> Path:
        config = load_config(overrides=[*TINY, *overrides])
        return train(source, folder, config, **{"frames": frame_cache, **options})

    return run


@pytest.fixture(scope="session")
def trained(training, tmp_path_factory) -> Path:
    """A run with CoLo-CAM and F-CAM, trained on the collection's tags alone; read only."""
    return shutil.copytree(training / "run", tmp_path_factory.mktemp("trained") / "run")


@pytest.fixture
def own_run(trained, tmp_path) -> Path:
    """A copy of that run that may be changed."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture(scope="session")
def onnx_file(trained, shared) -> Path:
    """The model of that run as an ONNX file; read only."""
    from colocam.inference.onnx_export import export_onnx  # noqa: PLC0415

    return shared("exported", lambda folder: export_onnx(trained, folder / "model.onnx")) / "model.onnx"


PRESETS = {
    "cpu": ("frames.resize=36", "frames.crop=32", "classifier.epochs=2", "localizer.epochs=2"),
    "resnet50": (
        "frames.resize=72",
        "frames.crop=64",
        "frames.map_size=32",
        "classifier.size=32",
        "classifier.frames_per_clip=2",
        "localizer.epochs=1",
        "localizer.batch=8",
        "localizer.sequences_per_clip=1",
    ),
    "lite0": (
        "frames.resize=108",
        "frames.crop=96",
        "frames.map_size=48",
        "classifier.frames_per_clip=2",
        "localizer.epochs=1",
        "localizer.batch=8",
        "localizer.sequences_per_clip=1",
    ),
    "paper": (
        "frames.resize=36",
        "frames.crop=32",
        "backbone.args={layers: [1, 1, 1, 1]}",  # the preset resnet50 has all of the same blocks
        "classifier.epochs=1",
        "localizer.epochs=1",
    ),
}
"""Preset → what makes it tiny: tests/config/presets says which settings these may be. All others are as shipped."""


def random_weights(path: Path, backbone: Backbone) -> None:
    """Store an encoder in place of a download: random, with batch norms that keep its features in a sane range."""
    import torch  # noqa: PLC0415 - torch only for those who need it
    from safetensors.torch import save_file  # noqa: PLC0415

    from colocam.models import Encoder  # noqa: PLC0415

    torch.manual_seed(0)
    network = Encoder(backbone.model_copy(update={"pretrained": False})).network.train()
    for part in network.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.ones_(part.weight)  # timm starts residual blocks at 0: nothing would pass through them
            part.momentum = None  # statistics are those of the one batch below
    with torch.no_grad():
        network(torch.randn(8, 3, 64, 64))
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, path)


@pytest.fixture(scope="session")
def preset_run(shared, collection) -> Callable[[str], Path]:
    """``preset_run(name)`` is the run folder of a shipped preset, trained by the command on tiny frames; read only.

    The preset ``lite0`` is taught by that of ``resnet50``, as its guide says.
    """

    def train_preset(folder: Path, preset: str) -> None:
        changes = list(PRESETS[preset])
        backbone = load_config(preset, overrides=changes).backbone
        if backbone.pretrained:
            random_weights(folder / "encoder.safetensors", backbone)
            changes.append(f"backbone.weights={folder / 'encoder.safetensors'}")
        command = ["train", collection.manifest, "--preset", preset, "--out", folder / "run"]
        command += [word for change in changes for word in ("--set", change)]
        if preset == "lite0":
            command += ["--teacher", get("resnet50")]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["colocam", *map(str, command)])
            with pytest.raises(SystemExit) as stop:
                main()
        assert not stop.value.code

    def get(preset: str) -> Path:
        return shared(f"preset-{preset}", lambda folder: train_preset(folder, preset)) / "run"

    return get


BOX_ENCODER = """<ir_version: 9, opset_import: ["" : 17]>
encoder (float[1,3,64,64] image) => (float[1,3,4,4] image_embeddings) {
  image_embeddings = AveragePool <kernel_shape=[16,16], strides=[16,16]> (image)
}"""
BOX_DECODER = """<ir_version: 9, opset_import: ["" : 17]>
decoder (float[1,3,4,4] image_embeddings, float[p,2,2] point_coords, float[p,2] point_labels)
  => (float[p,3,32,32] low_res_masks, float[p,3] iou_predictions) {
  first = Constant <value_float=1.0> ()
  end = Constant <value_float=65.0> ()
  step = Constant <value_float=2.0> ()
  places = Range (first, end, step)
  row = Constant <value_ints=[1,1,1,32]> ()
  column = Constant <value_ints=[1,1,32,1]> ()
  x = Reshape (places, row)
  y = Reshape (places, column)
  flat = Constant <value_ints=[-1,4]> ()
  corners = Reshape (point_coords, flat)
  a, b, c, d = Split <axis=1> (corners)
  lifted = Constant <value_ints=[-1,1,1,1]> ()
  x1 = Reshape (a, lifted)
  y1 = Reshape (b, lifted)
  x2 = Reshape (c, lifted)
  y2 = Reshape (d, lifted)
  left = Sub (x, x1)
  right = Sub (x2, x)
  top = Sub (y, y1)
  bottom = Sub (y2, y)
  whole = Min (left, right, top, bottom)
  eight = Constant <value_float=8.0> ()
  many = Constant <value_float=1000.0> ()
  inner = Sub (whole, eight)
  nothing = Sub (whole, many)
  low_res_masks = Concat <axis=1> (whole, inner, nothing)
  means = ReduceMean <axes=[2,3], keepdims=0> (low_res_masks)
  iou_predictions = Sigmoid (means)
}"""


@pytest.fixture(scope="session")
def box_segmenter_files(tmp_path_factory) -> str:
    """Folder of a segmenter in two ONNX files that fills the box of each prompt; a point gives no mask.

    Of its three masks the second is 8 of 64 pixels narrower on each side, and the third is empty.
    """
    import onnx.parser  # noqa: PLC0415 - slow to import

    folder = tmp_path_factory.mktemp("segmenter")
    for name, text in (("boxes.encoder", BOX_ENCODER), ("boxes.decoder", BOX_DECODER)):
        onnx.save(onnx.parser.parse_model(text), folder / f"{name}.onnx")
    return str(folder)


@pytest.fixture
def colocam(monkeypatch, capfd):
    """``colocam("train", …)`` runs the command line in this process and gives its :class:`Outcome`."""

    return lambda *arguments: _outcome(main, arguments, monkeypatch, capfd)


@pytest.fixture
def new_colocam(monkeypatch, capfd):
    """The same as a new process would run it, where the packages ``absent`` cannot be imported."""

    def run(*arguments: object, absent: Sequence[str] = ()) -> Outcome:
        with fresh_modules(*absent):
            return _outcome(import_module("colocam.cli").main, arguments, monkeypatch, capfd)

    return run


def _outcome(command, arguments, monkeypatch, capfd) -> Outcome:
    monkeypatch.setattr("sys.argv", ["colocam", *map(str, arguments)])
    capfd.readouterr()
    with pytest.raises(SystemExit) as stop:
        command()
    return Outcome(int(stop.value.code or 0), *capfd.readouterr())


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``full_disk(name)``: writing a file of this name says what a full disk says; ``full_disk("")`` ends that."""

    def fill(full: str) -> None:
        @contextmanager
        def temporary(target: Path) -> Iterator[Path]:
            with temporary_file(target) as path:
                if target.name == full:
                    path.unlink()
                    path.symlink_to("/dev/full")
                yield path

        monkeypatch.setattr("colocam.utils.files.temporary_file", temporary)

    return fill


@pytest.fixture(autouse=True)
def _onednn():
    """A bfloat16 product on a CPU without it switches oneDNN off for the process; later tests would round otherwise."""
    yield
    if (torch := sys.modules.get("torch")) is not None:
        torch.backends.mkldnn.set_flags(True)
