"""Label Studio: an ML backend that predicts boxes of videos and turns annotations into corrections (extra ``serve``).

``python -m colocam.integrations.label_studio_backend runs/pets videos work`` answers the requests that Label Studio
makes of ML backends: ``/health``, ``/setup``, ``/predict`` and ``/webhook``. It needs no package of Label Studio.

Videos are read from one folder alone, whatever address a task names; results are written to another: ``tables/`` with
localization tables, and ``corrections/`` with a file for each annotation, in the order in which ``learn`` reads them.
"""

import json
import secrets
import sys
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import BaseModel

from colocam.config.options import make_options
from colocam.errors import ColocamError
from colocam.inference.engine import Model
from colocam.inference.results import Tables, Writing
from colocam.inference.task import LocalizeVideo, Worker
from colocam.inference.videos import Video, find_videos
from colocam.labels import Correction, Options, import_labels, read_corrections, write_corrections
from colocam.labels.formats.label_studio import names_of, place_of, regions_of
from colocam.labels.formats.reading import parse_xml
from colocam.labels.labeled_videos import read_videos
from colocam.utils.digests import MEMORY, FileDigests
from colocam.utils.extras import not_installed
from colocam.utils.progress import say
from colocam.video.frame_choice import ALL

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from starlette.responses import JSONResponse, Response
except ModuleNotFoundError as absent:
    problem = not_installed(absent, "the backend of Label Studio")
    if __name__ == "__main__":
        sys.exit(f"error: {problem}")
    raise problem from absent

PORT = 9090
"""Where Label Studio's documents expect a backend."""
SAVED = frozenset({"ANNOTATION_CREATED", "ANNOTATION_UPDATED"})
"""Events of the webhook that carry an annotation."""
PLAYER_RATE = 24.0
"""Frames per second of Label Studio's player, where the labeling configuration states none."""


class Control(NamedTuple):
    """The control of a labeling configuration that draws rectangles in videos.

    Attributes:
        name: of the control.
        video: name of the video that it labels.
        key: key of the video's address in the data of a task.
        rate: the ``frameRate`` of the player: a number, or the key of one in the data, after a ``$``.
        labels: its classes.
    """

    name: str
    video: str
    key: str
    rate: str
    labels: frozenset[str]


class Backend:
    """Predicts, and stores corrections.

    Args:
        model: run folder or ONNX file.
        videos: folder of the videos that Label Studio shows.
        work: folder for tables and corrections.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
        options: fields of :class:`colocam.config.options.Options`.
    """

    def __init__(self, model: Path, videos: Path, work: Path, device: str | None = None, **options: Any) -> None:  # noqa: ANN401
        if not videos.is_dir():
            raise ColocamError(f"{videos} is not a folder: give the folder of the videos that Label Studio shows")
        self.videos = videos
        self.work = work
        self.version = f"colocam {model.name}"
        to_load = Model(model, make_options(device, **options))
        (self._localizer, *_) = to_load.load()
        self._writing = Writing(annotate=False)
        self._key = to_load.key(ALL)
        self._worker = Worker(self._localizer, FileDigests(work / "tables" / MEMORY))
        self._busy = Lock()  # one video at a time; a second request for the same video finds its table

    def predict(self, tasks: list[dict[str, Any]], label_config: str) -> list[dict[str, Any]]:
        """Predictions of tasks: a video rectangle for each track, its key frames counted from 1.

        A video that was localized before, by this backend or by ``colocam localize`` into ``WORK/tables``, is not
        localized again.
        """
        control = parse_control(label_config)
        return [self._prediction(task.get("data") or {}, control) for task in tasks]

    def fit(self, event: str, task: dict[str, Any] | None, annotation: dict[str, Any] | None) -> dict[str, Any]:
        """Write what an annotation changes as ``WORK/corrections/task-<id>-<count>.csv``; other events do nothing."""
        if event not in SAVED or task is None or annotation is None:
            return {}
        data = task.get("data") or {}
        texts = [value for value in data.values() if isinstance(value, str)]
        video = self._named(str(data.get("video") or (texts or [""])[0]))
        with self._busy, TemporaryDirectory(prefix="colocam-") as folder:
            exported = Path(folder) / "task.json"
            labeled = {"data": {**data, "video": video.source.name}, "annotations": [annotation]}
            exported.write_text(json.dumps([labeled]), encoding="utf-8")
            # A saved annotation without a region says that the person found nothing in the video.
            checked = None if annotation.get("result") or annotation.get("was_cancelled") else "all"
            tables = [self._table(video)]
            labels = import_labels(
                exported, "label-studio", tables=tables, classes=self._localizer.tags, checked=checked
            )
            path = self._store(int(task.get("id") or 0), labels.corrections) if labels.corrections else None
        for line in labels.left_out.lines():
            say(line)
        return {"corrections": None if path is None else path.name, "summary": labels.summary()}

    def _store(self, task: int, corrections: list[Correction]) -> Path:
        folder = self.work / "corrections"
        earlier = sorted(folder.glob(f"task-{task:06d}-*.csv"))
        if earlier and read_corrections(earlier[-1]) == corrections:
            return earlier[-1]
        return write_corrections(folder / f"task-{task:06d}-{len(earlier) + 1:04d}.csv", corrections)

    def _prediction(self, data: Mapping[str, Any], control: Control) -> dict[str, Any]:
        named = self._named(str(data.get(control.key) or ""))
        with self._busy:
            table = self._table(named)
        (video,) = read_videos([table], [])
        _check_rate(control, data, float(video.source.fps), named.source.name)
        regions = [
            {**region, "from_name": control.name, "to_name": control.video}
            for region in regions_of(video, Options().tolerance)
            if region["value"]["labels"][0] in control.labels
        ]
        scores = [region["score"] for region in regions if "score" in region]
        return {"result": regions, "score": sum(scores) / max(len(scores), 1), "model_version": self.version}

    def _table(self, video: Video) -> Path:
        """The localization table of a video, made if it is not there."""
        tables = Tables(self.work / "tables", self._writing, recompute=False)
        LocalizeVideo(video, tables, self._key)(self._worker)
        return self._writing.files(video, tables.out).table

    def _named(self, address: str) -> Video:
        """The video of the folder that a task's address names, by its file name and as many folders as needed."""
        place = place_of(address)
        names = names_of(address)
        videos = [(video, video.path) for video in find_videos([self.videos], self.work / "tables")]
        matching = [(video, path.relative_to(self.videos)) for video, path in videos if path.name in names]
        if len(matching) > 1:
            matching = [(video, path) for video, path in matching if place.parts[-len(path.parts) :] == path.parts]
        if len(matching) != 1:
            how = "several files" if matching else "no file"
            match = "match" if matching else "matches"
            raise ColocamError(
                f"{how} in {self.videos} {match} {address[:200]!r}: name the folder that holds these videos"
            )
        return matching[0][0]


def parse_control(label_config: str) -> Control:
    """Find the control for rectangles in videos."""
    root = parse_xml(label_config, "label_config")
    boxes = root.find(".//VideoRectangle")
    videos = {video.get("name"): video for video in root.iter("Video")}
    if boxes is None or (video := videos.get(boxes.get("toName"))) is None:
        raise ColocamError("label_config has no VideoRectangle of a Video: use the config.xml of 'colocam export'")
    named = [group for group in root.iter("Labels") if group.get("toName") == boxes.get("toName")]
    labels = frozenset(label.get("value") or "" for group in named for label in group.iter("Label"))
    key = (video.get("value") or "$video").removeprefix("$")
    return Control(boxes.get("name") or "", boxes.get("toName") or "", key, video.get("frameRate") or "", labels)


def _check_rate(control: Control, data: Mapping[str, Any], fps: float, name: str) -> None:
    """Refuse a player whose frames are not those of the video: boxes would be shown at other times."""
    stated = data.get(control.rate.removeprefix("$")) if control.rate.startswith("$") else control.rate
    try:
        rate = float(stated or PLAYER_RATE)
    except (TypeError, ValueError):
        rate = PLAYER_RATE
    if abs(rate - fps) > 0.01:
        raise ColocamError(
            f'{name} has {fps:g} frames per second, Label Studio plays {rate:g}: write frameRate="$fps" in the '
            f'labeling configuration and "fps": {fps:g} in the task\'s data'
        )


class PredictRequest(BaseModel):
    """What Label Studio sends to ``/predict``; further keys are not used."""

    tasks: list[dict[str, Any]]
    label_config: str


class WebhookRequest(BaseModel):
    """What Label Studio sends to ``/webhook``."""

    action: str
    task: dict[str, Any] | None = None
    annotation: dict[str, Any] | None = None


def make_app(backend: Backend, password: str = "") -> FastAPI:
    """The server. With a ``password`` each request must carry it (HTTP basic authentication, any user name).

    Requests of browsers are refused: Label Studio's server calls, and no page has a reason to.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Response:  # noqa: ANN401 - Starlette's signature
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            return JSONResponse({"error": "requests of browsers are refused"}, 403)
        if password and not secrets.compare_digest(_password(request), password.encode()):
            return JSONResponse({"error": "wrong password"}, 401, {"www-authenticate": "Basic"})
        answer: Response = await call_next(request)
        return answer

    @app.exception_handler(ColocamError)
    def refuse(_request: Request, error: ColocamError) -> JSONResponse:
        say(f"error: {error}")
        return JSONResponse({"error": str(error)}, 400)

    @app.get("/")
    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "UP", "model_class": "colocam"}

    @app.post("/setup")
    def setup() -> dict[str, str]:
        return {"model_version": backend.version}

    @app.post("/predict")
    def predict(request: PredictRequest) -> dict[str, Any]:
        results = backend.predict(request.tasks, request.label_config)
        return {"results": results, "model_version": backend.version}

    @app.post("/webhook", status_code=201)
    def webhook(request: WebhookRequest) -> dict[str, Any]:
        return backend.fit(request.action, request.task, request.annotation)

    return app


def _password(request: Request) -> bytes:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    try:
        return b64decode(value).partition(b":")[2] if scheme.lower() == "basic" else b""
    except Base64Error:
        return b""


def main(
    model: Annotated[Path, typer.Argument(help="Run folder or ONNX file.")],
    videos: Annotated[Path, typer.Argument(help="Folder of the videos that Label Studio shows.")],
    work: Annotated[Path, typer.Argument(help="Folder for tables and corrections.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = PORT,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    password: Annotated[
        str, typer.Option(envvar="COLOCAM_PASSWORD", help="Required unless only this machine can connect.")
    ] = "",
) -> None:
    """Serve predictions to Label Studio, and store its annotations as corrections."""
    if host not in {"127.0.0.1", "::1", "localhost"} and not password:
        raise typer.BadParameter(f"{host} is open to others: set COLOCAM_PASSWORD, and give it to Label Studio")
    try:
        app = make_app(Backend(model, videos, work, device), password)
    except ColocamError as error:
        say(f"error: {error}")
        raise typer.Exit(1) from error
    uvicorn.run(app, host=host, port=port, log_level="warning")


if __name__ == "__main__":
    typer.run(main)
