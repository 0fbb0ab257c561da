"""Sound files of every kind that colocam reads. They are made once, and each input changes copies of them."""

import shutil
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import yaml

from tests.helpers import youtube_archives
from tests.helpers.box_segmenter import BOX_DECODER, BOX_ENCODER
from tests.helpers.small_runs import TINY
from tests.helpers.videos import TAGS, make_collection, make_video, square_video

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
VIDEOS: tuple[tuple[str, str, str], ...] = (
    *(("h264.mp4", "libx264", "yuv420p"), ("h264.mkv", "libx264", "yuv420p"), ("h264.ts", "libx264", "yuv420p")),
    *(("h264.h264", "libx264", "yuv420p"), ("mpeg4.avi", "mpeg4", "yuv420p"), ("mpeg4.mp4", "mpeg4", "yuv420p")),
    *(("mjpeg.avi", "mjpeg", "yuvj420p"), ("mjpeg.mov", "mjpeg", "yuvj420p"), ("ffv1.mkv", "ffv1", "bgr0")),
    *(("vp8.webm", "libvpx", "yuv420p"), ("vp9.webm", "libvpx-vp9", "yuv420p"), ("raw.avi", "rawvideo", "bgr24")),
    *(("mpeg2.ts", "mpeg2video", "yuv420p"), ("mpeg1.mpg", "mpeg1video", "yuv420p"), ("flv.flv", "flv", "yuv420p")),
    *(("wmv.asf", "wmv2", "yuv420p"), ("gif.gif", "gif", "rgb8"), ("apng.apng", "apng", "rgba")),
    *(("png.mov", "png", "rgba"), ("prores.mov", "prores_ks", "yuv422p10le")),
    ("gray.mkv", "ffv1", "gray16le"),
)
ENDINGS = (".png", ".jpg", ".bmp", ".tiff", ".webp", ".ppm")


def make_corpus(folder: Path) -> None:
    """Write all files; the current folder is ``folder`` meanwhile, since runs name their videos relative to it."""
    for name, codec, pixels in VIDEOS:
        _video(folder / "videos" / name, codec, pixels)
    (folder / "videos" / "raw.y4m").write_bytes(b"YUV4MPEG2 W4 H4 F25:1\n" + (b"FRAME\n" + bytes(range(24))) * 6)
    for index, image in enumerate(square_video("owl", 2, 3)[0]):
        for ending in ENDINGS:
            _image(folder / "images" / ending[1:] / f"{index}{ending}", image)
    _collection(folder)
    _predictions(folder)
    _shots(folder)
    _segmenter(folder / "segmenter")
    youtube_archives.v1(folder / "youtube-1.0", train=3)
    youtube_archives.v2(folder / "youtube-2.2")
    shutil.copytree(STORED / "run", folder / "stored-run")
    shutil.copytree(STORED / "videos", folder / "stored-videos")
    shutil.copy(STORED / "truth.csv", folder / "stored-truth.csv")
    shutil.copy(STORED / "model.onnx", folder / "model.onnx")
    _results(folder)


def _video(path: Path, codec: str, pixels: str) -> None:
    try:
        make_video(path, square_video("cat", 1, 6)[0], codec=codec, pix_fmt=pixels)
    except (av.FFmpegError, ValueError):  # this FFmpeg lacks the codec
        path.unlink(missing_ok=True)


def _image(path: Path, image: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(path.suffix, image[..., ::-1])[1].tobytes())


def _collection(folder: Path) -> None:
    """Three tags with two training, a validation and a test video each; manifest, true boxes, configuration."""
    truth = make_collection(folder, {"train": 2, "val": 1, "test": 1}).truth
    header, *rows = truth.read_text(encoding="utf-8").splitlines()
    rows = [f"{row},{row[:3]},{row[4:].partition('-')[0]},48,40" for row in rows]
    truth.write_text("\n".join([f"{header},tag,split,width,height", *rows]) + "\n", encoding="utf-8")
    from colocam.config import parse_value  # noqa: PLC0415

    settings: dict[str, Any] = {}
    for key, value in (override.split("=") for override in TINY):
        *sections, name = key.split(".")
        reduce(lambda inner, section: inner.setdefault(section, {}), sections, settings)[name] = parse_value(value, key)
    settings["classifier"]["epochs"] = settings["localizer"]["epochs"] = 1
    (folder / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


def _predictions(folder: Path) -> None:
    """Boxes and maps of the test frames, as another program would write them."""
    rows = ["clip,frame,x1,y1,x2,y2,tag,score"]
    rng = np.random.default_rng(0)
    for tag in TAGS:
        for frame in range(4):
            rows.append(f"{tag}/test-0,{frame},{3 + 2 * frame},7,{21 + 2 * frame},22,{tag},0.{frame + 3}")
            place = folder / "maps" / tag / "test-0"
            place.mkdir(parents=True, exist_ok=True)
            levels = rng.integers(0, 256, (40, 48)).astype(np.uint8)
            if frame % 2:
                np.save(place / f"{frame}.npy", levels.astype(np.float32) / 255)
            else:
                (place / f"{frame}.png").write_bytes(cv2.imencode(".png", levels)[1].tobytes())
            mask = folder / "masks" / tag / "test-0" / f"{frame}.png"
            mask.parent.mkdir(parents=True, exist_ok=True)
            mask.write_bytes(cv2.imencode(".png", (levels > 128).astype(np.uint8) * 255)[1].tobytes())
    (folder / "predictions.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _shots(folder: Path) -> None:
    """Single frames of shots, and the table that ``colocam index frames`` reads."""
    rows = ["video,shot,frame,class,split,width,height,x1,y1,x2,y2"]
    for tag in TAGS:
        for split in ("train", "val", "test"):
            for index, image in enumerate(square_video(tag, 0, 2)[0]):
                name = f"shots/{tag}-{split}-{index}.png"
                _image(folder / name, image)
                rows.append(f"{tag}-{split},1,{name},{tag},{split},48,40,4,8,20,24")
    (folder / "shots.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _segmenter(folder: Path) -> None:
    import onnx.parser  # noqa: PLC0415

    folder.mkdir()
    for name, text in (("encoder", BOX_ENCODER), ("decoder", BOX_DECODER)):
        onnx.save(onnx.parser.parse_model(text), folder / f"small.{name}.onnx")


def _results(folder: Path) -> None:
    """What the commands themselves write: localization tables, a run that was trained here, its evaluation."""
    from colocam import evaluate, train  # noqa: PLC0415
    from colocam.config import load_config  # noqa: PLC0415
    from colocam.config.options import Options  # noqa: PLC0415
    from colocam.evaluation.dense import evaluate_dense  # noqa: PLC0415
    from colocam.inference.localize import localize_file  # noqa: PLC0415
    from colocam.labels import export  # noqa: PLC0415

    for name, how in {
        "plain": {"options": Options("cpu")},
        "masks": {"annotate": False, "options": Options("cpu", masks=True)},
        "parquet": {"table": "parquet", "annotate": False, "options": Options("cpu", instances=True)},
    }.items():
        localize_file("model.onnx", "videos/h264.mp4", f"results/{name}", **how)
    run = train(Path("manifest.csv"), Path("run"), load_config("demo", folder / "config.yaml"), frames=Path("frames"))
    evaluate(run, folder / "truth.csv", options=Options("cpu"))
    (folder / "index").mkdir()
    text = (folder / "manifest.csv").read_text(encoding="utf-8").replace("\nvideos/", "\n../videos/")
    (folder / "index" / "manifest.csv").write_text(text, encoding="utf-8")
    shutil.copy("truth.csv", "index/truth.csv")
    evaluate_dense(run, folder / "index", options=Options("cpu"))
    for kind in ("cvat", "label-studio", "coco", "yolo", "voc", "mot", "csv"):
        export(["results/plain/h264.csv"], kind, f"exports/{kind}")
    _corpus(folder)
    described = folder / "run" / "data.json"  # the copies of the run must read and write beside them
    described.write_text(described.read_text(encoding="utf-8").replace(f"{folder}/", ""), encoding="utf-8")


def _corpus(folder: Path) -> None:
    """Corrections of the videos of the run; a catalogue of some of them, one without a video, and its labels."""
    from colocam.labels import Correction, write_corrections  # noqa: PLC0415
    from colocam.types import Box  # noqa: PLC0415

    corrections = []
    for tag in TAGS:
        for clip in ("train-0", "train-1", "val-0"):
            where = {"video": clip, "pts": None, "tag": tag, "origin": "csv", "path": f"videos/{tag}/{clip}.mp4"}
            corrections.append(Correction(frame=0, kind="none", boxes=(), key=True, **where))
            for frame in (1, 2):
                box = Box(4.0 + 2 * frame, 8.0, 20.0 + 2 * frame, 24.0)
                corrections.append(Correction(frame=frame, kind="box", boxes=(box,), key=True, **where))
    write_corrections("corrections.csv", corrections)
    Path("videos/broken.mp4").write_bytes(b"no video")
    rows = ["path,tag", "videos/bus/train-0.mp4,", "videos/owl/test-0.mp4,owl", "videos/broken.mp4,"]
    Path("catalogue.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    # In a process of its own: workers cannot be forked from one that has trained, and so has threads.
    command = [sys.executable, "-c", "from colocam.cli import main; main()", "label", "model.onnx", "catalogue.csv"]
    done = subprocess.run([*command, "-o", "labels", "--workers", "1"], capture_output=True, text=True, check=False)
    if "1 of 3 videos could not be labeled" not in done.stderr:
        raise RuntimeError(done.stderr)
    (folder / "videos" / "broken.mp4").unlink()
