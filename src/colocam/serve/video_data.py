"""What is computed from a video, once: its frames, a proxy that browsers play, and what a model finds in it.

The proxy is H.264 with the same number of frames in the same order. It is read back before it is used, and the page
looks up the time that the browser states for a frame in the times that were read back. So a frame is known by
construction, whatever the container, the rate or the codec of the video.

Results have a key of their own, not that of ``localize`` (:mod:`colocam.inference.results`): the page has several
per video and looks for them before a model is loaded, so the key of model and settings is in their file names and in
addresses. What an older version made is computed again, and one line says so.

Tests: tests/serve/test_video_index.py, tests/serve/test_one_rule.py, tests/serve/test_models.py.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import Literal, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.inference.localizer import Localizer
from colocam.inference.task import localize_into
from colocam.labels import rank
from colocam.labels.review import doubts, signs
from colocam.labels.table import LocalizationTable, TableRows, read_table, take_rows
from colocam.labels.table_files import unused
from colocam.temporal.cuts import CutFinder, color_histograms
from colocam.temporal.presence import ABSENT
from colocam.temporal.smoothing import OFFLINE
from colocam.types import Float32Array, Float64Array, Image, Levels, Localization, VideoFrame
from colocam.utils.files import atomic_path, plain, publish, utf8
from colocam.utils.locks import temporary_file
from colocam.utils.progress import say
from colocam.video.decoder_child import Limits
from colocam.video.description import SourceVideo, describe, read_made, read_source, write_source
from colocam.video.fence import open_video
from colocam.video.frame_choice import ALL
from colocam.video.input import VideoInput
from colocam.video.reader import DEFAULT_FPS, VideoReader
from colocam.video.writer import VideoWriter

State = Literal["waiting", "reading", "read", "localizing", "ready", "failed"]
"""``read``: the frames are known, and the video waits for the model."""
PROXY_SIDE = 1280
"""Most pixels along a side of the proxy."""
PROXY_GOP = 12
"""Frames from one key frame of the proxy to the next: a browser decodes at most so many to show a frame."""
CUT_SIDE = 112
"""Side of the images that shot boundaries are found in."""
THUMBNAIL_SIDE = 320
TOLERANCE = 0.002
"""Seconds by which a time of the proxy may differ from that of the video."""
LIMITS = Limits(open_seconds=30.0, frame_seconds=30.0)
"""A person waits, so a decoder that gives no frame is ended sooner than in a batch."""
MAP_SIDE = 64
"""Side of the heat maps that the page shows; it enlarges them smoothly."""
DOUBTFUL = 0.5
"""Doubt from which a frame counts as doubtful in the library."""
QUEUE_SHARE = 0.2
"""Share of the frames in the queue of a video."""


class VideoIndex(NamedTuple):
    """The N frames of a video that can be decoded.

    Attributes:
        frames: (N,) index of each frame in the video.
        pts: (N,) presentation time in seconds.
        proxy: (N,) presentation time in the proxy, ascending; empty where there is no proxy.
        cuts: (N,) whether a frame begins a new shot.
        thumbnail: (1,) position of the frame that the thumbnail shows, 0 to N − 1.
        source: size, rate and length of the video.
    """

    frames: npt.NDArray[np.int64]
    pts: Float64Array
    proxy: Float64Array
    cuts: npt.NDArray[np.bool_]
    thumbnail: npt.NDArray[np.int64]
    source: SourceVideo


ARRAYS = VideoIndex._fields[:-1]
"""What is stored of an index."""


def open_fenced(path: Path, limits: Limits = LIMITS) -> VideoReader:
    """A reader of a video or a folder of images, which decodes in a process with limits: anybody may upload."""
    return open_video(VideoInput(str(path), must_be_stored=True), limits=limits)


def stored_index(
    path: Path, described: Path, stored: Path, proxy: Path, thumbnail: Path, report: Callable[[float], None]
) -> VideoIndex:
    """The frames of a video, from its description and the file ``stored``; else see :func:`index_video`."""
    index = None
    with suppress(ColocamError):  # it was never described, or is damaged
        index = load_index(stored, read_source(described))
    if index is None or (len(index.proxy) and not proxy.is_file()):
        index = index_video(path, proxy, thumbnail, report)
        write_source(described, index.source)
        save_index(stored, index)
    return index


def index_video(
    path: Path, proxy: Path, thumbnail: Path, report: Callable[[float], None] = lambda _: None
) -> VideoIndex:
    """Decode a video once; write its proxy and a thumbnail.

    Args:
        path: a video or a folder of images.
        proxy: the mp4 file to write; it does not appear if it would not have the frames of the video.
        thumbnail: the JPEG file to write.
        report: called with the share that is done, 0–1.

    Raises:
        UnreadableError: no frame can be decoded.
    """
    frames: list[int] = []
    times: list[float] = []
    shown = 0
    finder = CutFinder(OFFLINE.cuts)
    cuts: list[npt.NDArray[np.bool_]] = []
    with open_fenced(path) as reader, temporary_file(proxy) as draft:
        total, size = reader.estimate(), (reader.info.width, reader.info.height)
        width, height = even_size(*size, PROXY_SIDE)
        with VideoWriter(draft, width, height, reader.info.fps or DEFAULT_FPS, gop=PROXY_GOP) as writer:
            for frame in reader.frames():
                if len(frames) in {0, total // 3}:
                    shown = len(frames)
                    with atomic_path(thumbnail) as temporary:
                        temporary.write_bytes(jpeg(_resized(frame.image, *even_size(*size, THUMBNAIL_SIDE)), 80))
                frames.append(frame.index)
                times.append(frame.pts)
                cuts.append(finder.push(color_histograms(_resized(frame.image, CUT_SIDE, CUT_SIDE)[None])))
                writer.write(_resized(frame.image, width, height), frame.pts - times[0])
                report(min(len(frames) / total, 1.0) if total else 0.0)
        cuts.append(finder.finish())
        pts = np.array(times)
        with open_fenced(draft) as written:
            read_back = np.array([frame.pts for frame in written.frames()])
        if same_times(pts, read_back):
            publish(draft, proxy)
        else:
            say(
                f"warning: the proxy of {path.name} would have different frames from the video, so its frames are "
                "shown one by one"
            )
            read_back = np.empty(0)
        source = describe(path, reader)
    return VideoIndex(np.array(frames, np.int64), pts, read_back, np.concatenate(cuts), np.array([shown]), source)


def even_size(width: int, height: int, side: int) -> tuple[int, int]:
    """Size of a smaller image: at most ``side`` along a side, and even, as H.264 needs."""
    scale = min(1.0, side / max(width, height))
    return max(2, 2 * round(width * scale / 2)), max(2, 2 * round(height * scale / 2))


def same_times(pts: Float64Array, proxy: Float64Array) -> bool:
    """Whether a proxy has as many frames as the video, at the same times after the first one.

    Where times of the video do not rise, or have gaps that mp4 cannot hold, only the number and the order count.
    """
    if len(pts) != len(proxy) or np.any(np.diff(proxy) <= 0):
        return False
    gaps = np.diff(pts)
    if np.any(gaps <= 1e-4) or np.any(gaps > 600):
        return True
    return bool(np.abs((pts - pts[0]) - (proxy - proxy[0])).max() <= TOLERANCE)


def save_index(path: Path, index: VideoIndex) -> None:
    """Store an index, without what describes the video."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **{name: getattr(index, name) for name in ARRAYS})


def load_index(path: Path, source: SourceVideo) -> VideoIndex | None:
    """Read an index; None if there is none or it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return VideoIndex(**{name: stored[name] for name in ARRAYS}, source=source)
    except Exception:  # noqa: BLE001 - NumPy, zipfile and zlib raise errors of a dozen kinds for damaged bytes
        return None


def _resized(image: Image, width: int, height: int) -> Image:
    if image.shape[:2] == (height, width):
        return image
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def jpeg(image: Image, quality: int) -> bytes:
    """A JPEG file of an image (H, W, 3)."""
    done, data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise ColocamError(f"cannot write an image of {image.shape[1]}×{image.shape[0]} pixels as JPEG")
    return data.tobytes()


@dataclass(frozen=True, eq=False)
class VideoResults:
    """What the model found in the N frames of a video.

    Attributes:
        index: the frames.
        rows: the localization table, one row per frame: of several objects the one that is longest in its shot.
        others: rows of the other objects, by frame; none where the model was asked for one object.
        doubt: (N,) 0–1.
        queue: frames to check, most doubtful first: index of the frame, and the reason in words.
        maps: (N, 64, 64) heat maps, 255 for 1; read from the disk as needed.
    """

    index: VideoIndex
    rows: TableRows
    others: TableRows
    doubt: Float64Array
    queue: list[tuple[int, str]]
    maps: Levels

    @property
    def absent(self) -> npt.NDArray[np.bool_]:
        """(N,) whether the model finds no object in a frame: by its presence, or by its box where that is not known."""
        presence = self.rows.presence
        return np.where(np.isnan(presence), np.isnan(self.rows.box[:, 0]), presence < ABSENT)

    @property
    def other_positions(self) -> npt.NDArray[np.int64]:
        """(n,) position of the frame of each row of :attr:`others`."""
        return np.searchsorted(self.rows.frame, self.others.frame)


@dataclass
class Video:
    """A video of the library. Only this type says how far the server is with it.

    Attributes:
        id: stands for its content for ever.
        name: unique in the library, as ``colocam localize`` names the results of the video, e.g. ``cat/01``.
        path: on this machine; the page never sees it.
        tag: class that the video carries, "" where it is unknown.
        digest: of its content; "" before it was read.
        state: how far it is, with the model and the settings in use.
        done: share of the present state that is done, 0–1.
        problem: why it failed, in one sentence.
        fault: whose fault that is: of the video, or of the machine, where another attempt may succeed.
        index: its frames, once they are read.
        results: what the model in use found with the settings in use, once it is done.
        results_by_key: what each model found with each setting, by :meth:`Library.results_key`, as far as it is done.
    """

    id: str
    name: str
    path: Path
    tag: str = ""
    digest: str = ""
    state: State = "waiting"
    done: float = 0.0
    problem: str = ""
    fault: Literal["", "video", "machine"] = ""
    index: VideoIndex | None = field(default=None, repr=False)
    results: VideoResults | None = field(default=None, repr=False)
    results_by_key: dict[str, VideoResults] = field(default_factory=dict, repr=False)

    def offered(self, tags: Sequence[str]) -> str:
        """The class among ``tags`` that the data or the nearest folder of this name say, "" where none does."""
        return next((name for name in (self.tag, *self.path.parent.parts[::-1]) if name in tags), "")

    @property
    def file(self) -> str:
        """The name with the ending of the file: what exports say in place of the path."""
        ending = utf8(self.path.suffix)
        return self.name if self.name.lower().endswith(ending.lower()) else self.name + ending


def unused_name(path: Path, name: str, taken: set[str], *, with_folders: bool) -> str:
    """The name for a video that no other has, also as a part of file names: with folders before it, or a number."""
    name = "/".join(plain(part) for part in name.split("/")) or "video"
    folders = path.absolute().parent.parts[1:][::-1] if with_folders else ()
    above = accumulate(folders[name.count("/") :], lambda under, folder: f"{plain(folder)}/{under}", initial=name)
    return unused(list(above), taken)


def stored_results(
    open_model: Callable[[], Localizer],
    path: Path,
    index: VideoIndex,
    table: Path,
    made: str,
    passed: Callable[[int], None],
    stopping: tuple[Event, ...],
) -> VideoResults:
    """What a model finds in a video: what is stored and was made of the same, else what it finds now.

    Args:
        open_model: gives the model.
        path: a video or a folder of images.
        index: its frames.
        table: the CSV file to read, or to write; a file of heat maps is beside it.
        made: stands for the model, its settings and the video.
        passed: called with the number of frames that passed the network, each time that some did.
        stopping: once one of them is set, this ends with an error and waits for no pass.
    """
    maps = table.with_suffix(".maps")
    stored = table.is_file() and maps.is_file()
    if not stored or read_made(table) != made:
        if stored:
            say(f"{path.name}: the stored results are of an older version: it is localized again")
        _localize(open_model(), path, table, maps, passed, stopping)
        write_source(table, index.source, made)
    rows, others = _one_per_frame(read_table(table, index.source, required=("class", "score")), index)
    if maps.stat().st_size != len(rows.frame) * MAP_SIDE**2:
        raise ColocamError(f"{maps} does not belong to {table.name}: delete both, then they are computed again")
    if rows.frame.tolist() != index.frames.tolist():
        raise ColocamError(f"{path} changed while it was being read: restart the server")
    heat = np.memmap(maps, np.uint8, "r", shape=(len(rows.frame), MAP_SIDE, MAP_SIDE))
    ranked = rank([rows], QUEUE_SHARE)
    queue = [(doubtful.frame, doubtful.reason) for doubtful in ranked]
    return VideoResults(index, rows, others, doubts(signs([rows])), queue, heat)


def _localize(
    localizer: Localizer,
    path: Path,
    table: Path,
    maps: Path,
    passed: Callable[[int], None],
    stopping: tuple[Event, ...],
) -> None:
    """Localize in a video; write its table and heat maps."""
    refines = localizer.segmenter is not None
    columns = ("track", "presence", "margin", "mask", "shot_probability", *(("refined",) if refines else ()))
    with (
        open_fenced(path) as reader,
        atomic_path(maps) as temporary,
        temporary.open("wb") as file,
        LocalizationTable(table, columns) as listed,
    ):

        def write(_: VideoFrame, objects: Sequence[Localization]) -> None:
            for localization in objects:
                listed.write(localization)
            file.write(small_levels(objects[0].heatmap).tobytes())

        localize_into(localizer, reader, ALL, write, passed=passed, stopping=stopping)


def _one_per_frame(rows: TableRows, index: VideoIndex) -> tuple[TableRows, TableRows]:
    """One row per frame, of the track that is longest in its shot; and the rows of the other tracks."""
    if len(np.unique(rows.frame)) == len(rows.frame):
        return rows, take_rows(rows, np.empty(0, np.int64))
    shot = np.cumsum(index.cuts)[np.searchsorted(index.frames, rows.frame).clip(max=len(index.frames) - 1)]
    there = ~np.isnan(rows.box[:, 0])
    lengths = Counter(zip(shot[there].tolist(), rows.track[there].tolist(), strict=True))
    longest: dict[int, int] = {}
    for (number, track), _ in sorted(lengths.items(), key=lambda item: (-item[1], item[0])):
        longest.setdefault(number, track)
    main = there & (rows.track == np.array([longest.get(number, -1) for number in shot.tolist()], np.int64))
    # Frames that only show other objects have a row, too.
    first = np.lexsort((~main, rows.frame))
    chosen = first[np.unique(rows.frame[first], return_index=True)[1]]
    kept = take_rows(rows, chosen)
    empty = ~main[chosen]
    kept.box[empty], kept.score[empty], kept.margin[empty], kept.track[empty] = np.nan, 0.0, np.nan, -1
    masks = ["" if none else mask for none, mask in zip(empty.tolist(), kept.mask, strict=True)]
    return kept._replace(mask=masks), take_rows(rows, np.flatnonzero(there & ~main))


def outlines(results: VideoResults, rows: slice) -> list[list[list[int]]]:
    """Outlines of the object in some rows: closed polygons x1, y1, x2, y2, … in pixels of the video, also of holes."""
    source = results.index.source
    polygons: list[list[list[int]]] = []
    for text in results.rows.mask[rows]:
        mask = rle.decode(text, source.height, source.width) if text else np.zeros((1, 1), bool)
        contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
        within = max(source.width, source.height) / 2000  # a page shows no finer detail
        simpler = [cv2.approxPolyDP(contour, within, closed=True) for contour in contours]
        polygons.append([polygon.astype(int).ravel().tolist() for polygon in simpler])
    return polygons


def small_levels(heatmap: Float32Array, how: int = cv2.INTER_AREA) -> npt.NDArray[np.uint8]:
    """A map in 0–1 as the page gets it: (64, 64), 255 for 1."""
    small = cv2.resize(heatmap, (MAP_SIDE, MAP_SIDE), interpolation=how)
    levels: npt.NDArray[np.uint8] = np.round(255 * np.clip(np.nan_to_num(small), 0, 1)).astype(np.uint8)
    return levels
