"""A server on this computer that answers the few requests that cvat-sdk makes of CVAT."""

import io
import json
import zipfile

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.helpers.served_page import over_socket

DATE = "2026-01-01T00:00:00Z"
SUMMARY = {"count": 0, "completed": 0, "validation": 0, "url": "http://x/"}


class FakeCvat:
    """One task; ``uploaded`` holds the files that were imported, ``patched`` the annotations that were added.

    Args:
        names: file names of the frames; one for a video.
        frames: number of frames.
        size: width and height.
        labels: names of the task's labels, all of type ``any``.
        images: PNG or JPEG bytes of the frames, for tasks of images.
    """

    token = "secret"

    def __init__(self, names, frames, size, labels, images=()):
        self.names, self.frames, self.size, self.labels, self.images = names, frames, size, labels, images
        self.annotations = {"version": 0, "tags": [], "shapes": [], "tracks": []}
        self.uploaded, self.patched = {}, []
        self.failure = None

    def get(self, path):
        """The answer to a GET; None: there is no such thing."""
        answers = {
            "/api/server/about": self._about,
            "/api/tasks/12": self._task,
            "/api/labels": self._labels,
            "/api/tasks/12/data/meta": self._meta,
            "/api/tasks/12/data": self._chunk,
            "/api/tasks/12/annotations": lambda: self.annotations,
            "/api/requests/rq-1": self._request,
        }
        return answers.get(path, lambda: None)()

    def _about(self):
        return {"name": "CVAT", "description": "", "version": "2.80.0", "logo_url": "", "subtitle": ""}

    def _task(self):
        kind = "imageset" if self.images else "video"
        chunks = {"data_chunk_size": 10, "data_original_chunk_type": kind, "data_compressed_chunk_type": kind}
        facts = {"id": 12, "name": "video", "size": self.frames, "mode": "annotation", "organization": None}
        return {**facts, **chunks, "updated_date": DATE, "jobs": SUMMARY, "labels": {"url": "http://x/"}}

    def _labels(self):
        if self.labels is None:  # another version of CVAT
            return {"count": "many"}
        found = [{"id": 70 + index, "name": name, "type": "any"} for index, name in enumerate(self.labels)]
        found = [label | {"attributes": [], "sublabels": []} for label in found]
        return {"count": len(found), "next": None, "previous": None, "results": found}

    def _meta(self):
        width, height = self.size
        frames = [{"name": name, "width": width, "height": height, "related_files": 0} for name in self.names]
        whole = {
            "start_frame": 0,
            "stop_frame": self.frames - 1,
            "frame_filter": "",
            "image_quality": 70,
            "chunks_updated_date": DATE,
        }
        return {
            "size": self.frames,
            "chunk_size": 10,
            "frames": frames,
            "deleted_frames": [],
            "chunks_updated_date": DATE,
        } | whole

    def _chunk(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for index, image in enumerate(self.images):
                archive.writestr(f"{index:06d}.png", image)
        return packed.getvalue()

    def _request(self):
        state = {"status": "failed" if self.failure else "finished", "message": self.failure or ""}
        operation = {"type": "import:annotations", "target": "task"}
        return {**state, "id": "rq-1", "created_date": DATE, "operation": operation}

    async def read(self, request):
        """Answer a GET."""
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({"detail": "Invalid token."}, 401)
        found = self.get(request.url.path.rstrip("/"))
        if isinstance(found, bytes):
            return Response(found)
        return JSONResponse({"detail": "Not found."}, 404) if found is None else JSONResponse(found)

    async def begin(self, request):
        """Begin or finish an upload, as cvat-sdk does it by the protocol TUS."""
        if "upload-start" in request.headers:
            return Response(status_code=202)
        if "upload-finish" in request.headers:
            self.format = request.query_params.getlist("format")
            return JSONResponse({"rq_id": "rq-1"}, 202)
        place = f"{request.base_url}api/tasks/12/annotations/upload-1"
        return Response(status_code=201, headers={"location": place, "upload-filename": "labels.xml"})

    async def change(self, request):
        """Take the bytes of an upload, or annotations to add."""
        sent = await request.body()
        if request.url.path.endswith("/upload-1"):
            self.uploaded["labels.xml"] = sent
            return Response(status_code=204, headers={"upload-offset": str(len(sent))})
        assert "action=create" in request.url.query
        self.patched.append(json.loads(sent))
        return JSONResponse(self.annotations)


def serving(fake):
    """Serve ``fake`` and give its address."""
    answers = {"GET": fake.read, "POST": fake.begin, "PATCH": fake.change}
    routes = [Route("/{path:path}", answer, methods=[method]) for method, answer in answers.items()]
    return over_socket(lambda _: Starlette(routes=routes))
