"""Routes of what people say about videos: corrections, undo and redo, export and import of labels, lessons.

Tests: tests/serve/test_routes.py.
"""

import re
import secrets
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Body, Query, Request, Response
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from colocam.boxes.iou import iou
from colocam.labels import Correction as FrameCorrection
from colocam.labels import Options, export, readable, writable, write_corrections
from colocam.labels.table import take_rows
from colocam.serve.exchange import (
    CORRECTIONS,
    corrected_rows,
    corrections_of,
    filled,
    known_states,
    write_corrected,
)
from colocam.serve.guard import RefusalError
from colocam.serve.label_import import imported_correction
from colocam.serve.lessons import title_of
from colocam.serve.library import Library
from colocam.serve.marks import ASKED, INTERPOLATED, PREDICTED, Correction
from colocam.serve.tally import summed
from colocam.serve.video_data import Video, VideoResults
from colocam.serve.video_routes import ModelKey, OneVideo, Served, corners, model_of, receive
from colocam.types import Float64Array
from colocam.utils.files import atomic_path
from colocam.utils.locks import temporary_folder

MOST_IMPORTED = 1 << 28
ARCHIVES = 8
"""Exports that stay on the disk for their download."""
NEED_IMAGES = frozenset({"label-studio-masks"})
"""Formats that name image files instead of videos."""
LEFT_OUT = {"unchecked": (PREDICTED,), "asked": (ASKED,), "interpolated": INTERPOLATED}
"""States of frames that an export can leave out."""
SHOWN = 24
"""Boxes that moved most, of all videos."""
SHOWN_OF_VIDEO = 6
SAME = 0.95
"""Boxes that overlap by this IoU or more have not moved for a person who looks at them."""
APART = 12
"""Frames between two that are shown of one video, so that not all show one moment."""
CLIENT = r"^[0-9A-Za-z-]{8,64}$"
KEY = "^[0-9a-f]{16}$"

routes = APIRouter(prefix="/api")


class NewCorrection(BaseModel):
    """A correction that a page sends.

    Attributes:
        client: name that the page gave it, so that one that is sent twice is stored once.
        version: version of the video that the page last saw.
        change: what was done.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    client: Annotated[str, Field(pattern=CLIENT)]
    version: Annotated[int, Field(ge=0, le=1 << 48)]
    change: Correction


@routes.get("/videos/{video}/history")
def history(video: OneVideo, library: Served) -> dict[str, Any]:
    """The version of a video, its corrections that count, and those that were undone."""
    version, corrections = library.store.history(video.id)
    done, undone = ([correction.as_json() for correction in kind] for kind in corrections)
    return {"version": version, "done": done, "undone": undone}


@routes.post("/videos/{video}/history")
def correct(video: OneVideo, library: Served, new: NewCorrection) -> dict[str, Any]:
    """Store a correction; it is on the disk when the answer comes.

    ``results_key`` is another one where it, or its undo, gave the video another class: it is localized again.
    """
    event = library.correct(video, new.client, new.version, new.change)
    key = library.results_key(video, library.active)
    return {"version": event.version, "saved": event.made, "results_key": key}


@routes.get("/formats")
def formats() -> dict[str, Any]:
    """The formats of export and import, with their titles, and which of them can hold frames as images."""
    first = {CORRECTIONS: "only what people said, for 'colocam learn'"}
    back = {CORRECTIONS: "what people said on another page"}
    return {
        "export": first | {name: format_.title for name, format_ in writable().items()},
        "import": back | {name: format_.title for name, format_ in readable().items()},
        "images": [name for name, format_ in writable().items() if format_.images],
    }


class NewExport(BaseModel):
    """What to export.

    Attributes:
        to: format.
        images: with the frames as images.
        videos: none: all that are ready.
        leave_out: frames that are not exported, by what is known of them, see :class:`FrameCounts`.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    to: Annotated[str, Field(max_length=40)]
    images: bool = False
    videos: Annotated[list[Annotated[str, Field(pattern="^[0-9a-f]{24}$")]], Field(max_length=100_000)] = []
    leave_out: Annotated[list[Literal["unchecked", "asked", "interpolated"]], Field(max_length=3)] = []


@routes.post("/exports", status_code=201)
def make_export(new: NewExport, library: Served) -> dict[str, Any]:
    """Write a ZIP archive of what the screen shows, and give the id for its download.

    ``frames``: how many of its frames are checked, interpolated, asked about and unchecked; ``notes``: what the labels
    do not say as the screen does, and how videos are split.
    """
    videos = [library.video(video) for video in new.videos] or library.videos()
    ready = [video for video in videos if video.results is not None]
    if not ready:
        raise RefusalError(404, "no video is ready yet: wait until the model has finished one")
    key, exports = secrets.token_hex(16), library.workspace.exports
    with temporary_folder(exports) as folder:
        made, notes = _export(library, ready, new, folder)
        with (
            atomic_path(exports / f"{key}.zip") as target,
            zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped,
        ):
            for path in sorted(made.rglob("*")):
                if path.is_file() and not path.name.startswith("."):
                    zipped.write(path, path.relative_to(made))
    for archive in sorted(exports.glob("*.zip"), key=lambda path: path.stat().st_mtime_ns)[:-ARCHIVES]:
        archive.unlink(missing_ok=True)
    counted = summed(counts.frames for video in ready if (counts := library.tallies.of(video)) is not None)
    kept = {name: 0 if name in new.leave_out else count for name, count in counted._asdict().items()}
    return {
        "id": key,
        "name": f"{new.to}.zip",
        "videos": len(ready),
        "left_out": len(videos) - len(ready),
        "frames": kept,
        "notes": notes,
    }


def _export(library: Library, videos: list[Video], new: NewExport, folder: Path) -> tuple[Path, list[str]]:
    """Write labels below ``folder``; the folder that holds them, and what is to be said of them."""
    made = folder / "labels"
    if new.to == CORRECTIONS:
        corrections = all_corrections(library, videos)
        if not corrections:
            raise RefusalError(422, "nobody has corrected or accepted a frame yet, so there is nothing to export")
        made.mkdir()
        files = {video.id: video.file for video in videos}
        shown = [replace(correction, path=files[correction.content]) for correction in corrections]
        write_corrections(made / "corrections.csv", shown)
        return made, []
    tables: list[Path] = []
    boxes = 0
    left_out = [state for name in new.leave_out for state in LEFT_OUT[name]]
    for video in videos:
        assert video.results is not None
        objects = library.objects(video, video.results)
        rows = corrected_rows(video.results, objects)
        stay = video.results.rows.frame[~np.isin(known_states(video.results, objects), left_out)]
        rows = take_rows(rows, np.flatnonzero(np.isin(rows.frame, stay)))
        if not len(rows.frame):
            continue
        boxes += int(np.isfinite(rows.box[:, 0]).sum())
        rows = filled(rows, video.results.index) if new.to == "masks" else rows
        tables.append(write_corrected(folder / "tables", video, video.results.index, rows))
    if not tables:
        raise RefusalError(422, "no frame is left to export: check some frames first, or leave out fewer")
    if not boxes:
        raise RefusalError(422, "no frame to export has a box: draw one first")
    notes: list[str] = []
    options = Options(images=new.images or new.to in NEED_IMAGES)
    return export(tables, new.to, made, options=options, tell=notes.append), notes


@routes.get("/exports/{key}/{name}", response_class=Response)
def download(
    library: Served,
    key: Annotated[str, InPath(pattern="^[0-9a-f]{32}$")],
    name: Annotated[str, InPath(pattern=r"^[a-z-]{1,40}\.zip$")],
) -> Response:
    """A ZIP archive that was made before."""
    path = library.workspace.exports / f"{key}.zip"
    if not path.is_file():
        raise RefusalError(404, "this export has expired: export again")
    return FileResponse(path, media_type="application/zip", filename=name)


@routes.post("/videos/{video}/labels")
async def take_labels(
    video: OneVideo,
    library: Served,
    request: Request,
    format: Annotated[str, Query(max_length=40)],  # noqa: A002 - the page's word
    client: Annotated[str, Query(pattern=CLIENT)],
    version: Annotated[int, Query(ge=0, le=1 << 48)],
    labels_of: Annotated[str | None, Query(max_length=1000)] = None,
) -> dict[str, Any]:
    """Import labels of this video: a file or a ZIP archive is the body. They are one correction.

    ``labels_of`` answers the question which video of the file is meant.
    """
    suffix = re.sub(r"[^.a-z0-9]", "", Path(request.headers.get("x-video-name", "labels")).suffix.lower())[:10]
    with temporary_folder(library.workspace.uploads) as folder:
        file = folder / f"import{suffix}"  # labels.txt would list classes
        await receive(request, file, MOST_IMPORTED)
        async with request.app.state.reading:
            correction, left_out = await run_in_threadpool(imported_correction, library, video, file, format, labels_of)
    event = await run_in_threadpool(library.correct, video, client, version, correction)
    frames = {action.start for action in correction.actions}
    return {"saved": event.made, "changed": len(frames), "left_out": left_out}


def all_corrections(library: Library, videos: list[Video]) -> list[FrameCorrection]:
    """What people said about videos that are ready."""
    corrections: list[FrameCorrection] = []
    for video in videos:
        # A model that was just chosen may not have seen a video yet.
        results = video.results or next(iter(video.results_by_key.values()), None)
        if results is not None:
            corrections += corrections_of(video, results, library.objects(video, results))
    return corrections


@routes.get("/lessons")
def lesson(library: Served) -> dict[str, Any]:
    """The last lesson: its state, its output, and how well the new model agrees with held-out corrections.

    ``proof`` says whether the new model is better; only where its ``verdict`` is "better" should a page offer it, else
    say how many more videos to correct (``missing``). ``cannot_learn``: why no lesson can begin, "" where one can.
    """
    status = library.lessons.status()
    path, lines = status.pop("path"), [library.without_paths(line) for line in status["lines"]]
    learned = next((model.key for model in library.models.all() if model.path == path), "")
    counted = [counts for video in library.videos() if (counts := library.tallies.of(video)) is not None]
    corrected = [counts.corrections for counts in counted if counts.corrections]
    said = {"corrections": sum(corrected), "corrected_videos": len(corrected)}
    return {**status, **said, "lines": lines, "model": learned, "cannot_learn": library.lessons.refusal}


@routes.post("/lessons", status_code=202)
def start_lesson(library: Served) -> dict[str, Any]:
    """Begin to learn from all corrections, in the background."""
    library.lessons.start(all_corrections(library, library.videos()))
    return lesson(library)


@routes.delete("/lessons")
def cancel_lesson(library: Served) -> dict[str, Any]:
    """End the lesson that is running, if there is one."""
    library.lessons.stop()
    return lesson(library)


@routes.post("/lessons/quick", status_code=201)
def quick_lesson(library: Served) -> dict[str, Any]:
    """Choose thresholds and presence by all corrections at once, and use the model that has them."""
    folder, seconds = library.lessons.quick(all_corrections(library, library.videos()))
    model = library.models.add(folder, title_of(folder))
    library.use(model)
    return {"model": model.key, "title": model.title, "seconds": round(seconds, 3)}


@routes.get("/models")
def models(library: Served) -> dict[str, Any]:
    """All models, how many videos each has seen, and the one in use."""
    videos = [video for video in library.videos() if video.index is not None]
    listed = [
        {
            "key": model.key,
            "title": model.title,
            "seen": sum(library.results_of(video, model) is not None for video in videos),
            "problem": library.problems.get(model.key, ""),
        }
        for model in library.models.all()
    ]
    return {"active": library.active.key, "first": library.first.key, "videos": len(videos), "models": listed}


@routes.post("/models")
def use_model(key: Annotated[str, Body(embed=True, pattern=KEY)], library: Served) -> dict[str, Any]:
    """Use another model."""
    library.use(library.models.get(key))
    return models(library)


@routes.get("/changes")
def changes(library: Served, after: Annotated[str, Query(pattern=KEY)], before: ModelKey = None) -> dict[str, Any]:
    """The boxes that moved most from one model, by default that in use, to another."""
    old, new = model_of(library, before), library.models.get(after)
    library.look(new)
    videos = [video for video in library.videos() if video.index is not None]
    compared = 0
    moved: list[dict[str, Any]] = []
    for video in videos:
        old_results, new_results = library.results_of(video, old), library.results_of(video, new)
        if old_results is not None and new_results is not None:
            compared += 1
            moved += _moved(video, old_results, new_results)
    moved.sort(key=lambda frame: frame["overlap"])
    return {"videos": len(videos), "compared": compared, "moved": moved[:SHOWN]}


def overlaps(before: VideoResults, after: VideoResults) -> Float64Array:
    """(N,) IoU of the boxes of two models in each frame of a video; 1 where both find none."""
    overlap = iou(before.rows.box, after.rows.box)
    neither: npt.NDArray[np.bool_] = np.isnan(before.rows.box[:, 0]) & np.isnan(after.rows.box[:, 0])
    return np.where(neither, 1.0, overlap)


def most_moved(overlap: Float64Array, most: int) -> list[int]:
    """Positions of the frames of a video whose boxes moved most, largest change first, apart from each other."""
    chosen: list[int] = []
    for position in np.argsort(overlap, kind="stable").tolist():
        if overlap[position] >= SAME or len(chosen) == most:
            break
        if all(abs(position - other) >= APART for other in chosen):
            chosen.append(position)
    return chosen


def _moved(video: Video, before: VideoResults, after: VideoResults) -> list[dict[str, Any]]:
    overlap = overlaps(before, after)
    return [
        {
            "video": video.id,
            "name": video.name,
            "frame": int(before.rows.frame[at]),
            "overlap": round(float(overlap[at]), 4),
            "before": corners(before.rows.box[at].tolist()),
            "after": corners(after.rows.box[at].tolist()),
        }
        for at in most_moved(overlap, SHOWN_OF_VIDEO)
    ]
