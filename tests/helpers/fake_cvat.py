"""A server on this computer that answers the few requests that cvat-sdk makes of CVAT."""

import io
import json
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

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
        facts = {"id": 12, "name": "film", "size": self.frames, "mode": "annotation", "organization": None}
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


class Handler(BaseHTTPRequestHandler):
    """Answers from ``self.server.fake``."""

    def log_message(self, *_):
        pass

    def answer(self, status, content=b"", **headers):
        kind = "application/octet-stream" if isinstance(content, bytes) else "application/json"
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self):
        fake = self.server.fake
        if self.headers.get("Authorization") != f"Bearer {fake.token}":
            self.answer(401, {"detail": "Invalid token."})
            return
        found = fake.get(urlsplit(self.path).path.rstrip("/"))
        self.answer(404, {"detail": "Not found."}) if found is None else self.answer(200, found)

    def do_POST(self):
        self.body()
        if "Upload-Start" in self.headers:
            self.answer(202)
        elif "Upload-Finish" in self.headers:
            self.server.fake.format = parse_qs(urlsplit(self.path).query)["format"]
            self.answer(202, {"rq_id": "rq-1"})
        else:
            place = f"http://{self.headers['Host']}/api/tasks/12/annotations/upload-1"
            self.answer(201, Location=place, Upload_Filename="labels.xml")

    def do_PATCH(self):
        sent, fake = self.body(), self.server.fake
        if self.path.endswith("/upload-1"):
            fake.uploaded["labels.xml"] = sent
            self.answer(204, Upload_Offset=str(len(sent)))
        else:
            assert "action=create" in self.path
            fake.patched.append(json.loads(sent))
            self.answer(200, fake.annotations)


@contextmanager
def serving(fake):
    """Serve ``fake`` and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.fake = fake
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
