"""A server of ``colocam serve`` in this process. Its model needs no training: the box moves by a pixel a frame."""

import csv
import io
import time
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
from starlette.testclient import TestClient

from colocam.serve.library import Library
from colocam.serve.server import make_app
from colocam.serve.store import EventStore, open_workspace
from colocam.types import Box, Localization

HOST = "127.0.0.1:8620"
PATIENCE = 60
LESSON = """
import json, pathlib, sys
out = pathlib.Path(sys.argv[4])
out.mkdir()
stages = [{"name": "before", "iou": 0.5, "kept": True}, {"name": "decoder", "iou": 0.75, "kept": True}]
(out / "learning.json").write_text(json.dumps({"stages": stages, "held_out": {"frames": 7}}))
(out / "model.json").write_text("{}")
print("learned")
"""


def eventually(condition):
    """Wait until a condition holds; gives its value."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def model_file(path):
    """A file in the place of a model; its bytes are its name."""
    path.write_bytes(path.name.encode())
    return path


def gray_video(make_video, path, values, width=64):
    """A video whose frames are gray, each of another value."""
    return make_video(path, [np.full((48, width, 3), value, np.uint8) for value in values])


def two_shots(make_video, path, size=(48, 64), lengths=(25, 15)):
    """A video of noise with a cut."""
    noise = np.random.default_rng(0).integers(0, 90, (2, *size, 3)) + np.array([0, 150])[:, None, None, None]
    return make_video(path, list(np.repeat(noise.astype(np.uint8), lengths, axis=0)))


class MovingBox:
    """Stands in for a Localizer; its first box begins ``shift`` pixels from the left, a threshold moves it down."""

    tags = ("cat", "dog")
    card = SimpleNamespace(size=32, presence="known")
    segmenter = None
    reads_images = False

    def __init__(self, shift=5.0, *, tag=None, presence=None, threshold=None, instances=False, looks=None):
        self.shift, self.instances, self.looks = shift, instances, looks
        self.tag, self.presence, self.down = tag or "cat", presence or 0.0, 10 * (threshold or 0.0)

    def with_options(self, **options):
        return type(self)(self.shift, **options)

    def without_segmenter(self):
        return self

    def stream(self, frames, *, images, **_):  # noqa: ARG002 - as of a Localizer
        for frame in frames:
            x = self.shift + frame.index
            mask = np.zeros(frame.image.shape[:2], bool)
            mask[6:30, int(x) : int(x) + 20] = True
            heat = np.zeros((16, 16), np.float32)
            heat[4:8, 4:8] = 1
            faint = 0.1 if frame.index % 7 == 3 else 0.9
            found = Localization(
                frame=frame.index,
                pts=frame.pts,
                tag=self.tag,
                probability=0.6,
                shot_probability=0.9,
                box=Box(x, 6.0 + self.down, x + 20, 30.0) if self.presence <= 0.8 else None,
                score=faint,
                raw_map=heat,
                track=0,
                presence=0.8,
                margin=0.5,
                mask=mask,
            )
            if self.instances and 4 <= frame.index < 12:  # another one, which stays where it is, is found first
                yield frame, replace(found, box=Box(2.0, 32.0, 22.0, 46.0), score=0.4, track=1, mask=None, margin=None)
            yield frame, found


class LeavesAndReturns(MovingBox):
    """The object is away in frames 9 to 25, and the model says so."""

    def stream(self, frames, *, images, **_):
        for frame, found in super().stream(frames, images=images):
            away = replace(found, box=None, score=0.0, presence=0.02, track=None, mask=None)
            yield frame, away if 9 <= frame.index <= 25 else found


class Served:
    """A server and its client, which sends the token; ``video`` is the id of the video that methods mean."""

    def __init__(self, workspace, store, library):
        self.workspace, self.store, self.library = workspace, store, library
        app = make_app(library, frozenset({HOST}))
        self.client = TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False)
        self.client.headers["x-colocam-token"] = workspace.token
        self.client.cookies.set("colocam-8620", workspace.token)
        self.video = library.videos()[0].id if library.videos() else ""

    def post(self, change, version=None, client="client"):
        """Send a change of the video, made for its present version unless another is given."""
        version = self.store.history(self.video)[0] if version is None else version
        body = {"client": f"{client}-{self.video}-{version}", "version": version, "change": change}
        return self.client.post(f"/api/videos/{self.video}/history", json=body)

    def edit(self, *actions, **action):
        """Send actions, or one action by its parts."""
        return self.post({"kind": "edit", "actions": [*actions, *([action] if action else [])]})

    def exported(self, to, **more):
        """Names and bytes of the files of an export."""
        made = self.client.post("/api/exports", json={"to": to, **more})
        assert made.status_code == 201, made.json()
        data = self.client.get(f"/api/exports/{made.json()['id']}/{made.json()['name']}").content
        with zipfile.ZipFile(io.BytesIO(data)) as zipped:
            return {name: zipped.read(name) for name in zipped.namelist()}

    def rows(self, to="csv", name="video.csv", **more):
        """Rows of an exported table."""
        return list(csv.DictReader(io.StringIO(self.exported(to, **more)[name].decode())))

    def take(self, form, content, name="labels.zip", **more):
        """Send labels of the video; an export as :meth:`exported` gives it is packed."""
        if isinstance(content, dict):
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as zipped:
                for member, data in content.items():
                    zipped.writestr(member, data)
            content = packed.getvalue()
        version = self.store.history(self.video)[0]
        path = f"/api/videos/{self.video}/labels?format={form}&client=take-{form[:3]}-{self.video}-{version}"
        query = urlencode({"version": version, **more})
        return self.client.post(f"{path}&{query}", content=content, headers={"x-video-name": name})

    def wait(self):
        """Wait until all videos are ready, or failed."""
        eventually(lambda: all(video.state in {"ready", "failed"} for video in self.library.videos()))


@contextmanager
def serving(folder, videos=(), *, model=MovingBox, load=None, beside=(), quick=str, run=None, segmenter=""):
    """A server on ``folder``; all videos, paths or paths with names, are ready."""
    with open_workspace(folder) as workspace:
        store = EventStore(workspace.database)
        run = run or model_file(folder / "model.onnx")
        library = Library(
            workspace, store, [run, *beside], load or (lambda _path: model()), quick=quick, segmenter=segmenter
        )
        for video in videos:
            library.add(*video if isinstance(video, tuple) else (video,))
        library.start()
        server = Served(workspace, store, library)
        server.wait()
        try:
            yield server
        finally:
            library.stop()
            store.close()
