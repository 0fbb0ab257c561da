"""CVAT: an auto-annotation function for images, and upload of exported labels to tasks (extra ``cvat``).

``cvat-cli task auto-annotate TASK --function-module colocam.integrations.cvat_tasks -p model=str:pets.onnx`` runs the
function on each image. CVAT gives such functions no frames of videos; for these, export labels and :func:`push` them.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.inference.localizer import Localizer
from colocam.labels.formats.writing import polygon_of
from colocam.labels.labeled_videos import LabeledVideo, LabelSet
from colocam.types import Localization, VideoFrame
from colocam.utils.extras import not_installed
from colocam.utils.progress import say

try:
    import cvat_sdk.auto_annotation as cvat
    from cvat_sdk.api_client.exceptions import ApiException, OpenApiException
    from cvat_sdk.core.client import AccessTokenCredentials, Client, Config
    from cvat_sdk.core.exceptions import CvatSdkException
    from cvat_sdk.core.proxies.tasks import Task
    from cvat_sdk.masks import encode_mask
    from urllib3.exceptions import HTTPError
except ModuleNotFoundError as absent:
    raise not_installed(absent, __name__, "cvat") from absent

if TYPE_CHECKING:
    from PIL.Image import Image

HOST, TOKEN, ORGANIZATION = "CVAT_HOST", "CVAT_ACCESS_TOKEN", "CVAT_ORGANIZATION"
"""Environment variables: address of the server, personal access token, and short name of an organization, if any."""


class CvatFunction:
    """Finds the objects of one image; see ``cvat_sdk.auto_annotation.DetectionFunction``."""

    def __init__(self, localizer: Localizer) -> None:
        self.localizer = localizer
        kind = "any" if "mask" in localizer.columns else "rectangle"
        labels = [cvat.label_spec(tag, index, type=kind) for index, tag in enumerate(localizer.tags)]
        self.spec = cvat.DetectionFunctionSpec(labels=labels)

    def detect(self, context: cvat.DetectionFunctionContext, image: "Image") -> list[cvat.DetectionAnnotation]:
        """Boxes, or masks where the function has them, whose score is at least CVAT's confidence threshold."""
        frame = VideoFrame(0, 0.0, np.asarray(image.convert("RGB")))
        found = (one for _, one in self.localizer.stream([frame], live=True, images=False))
        least = context.conf_threshold or 0
        polygons = context.conv_mask_to_poly
        return [self._shape(one, polygons=polygons) for one in found if one.box is not None and one.score >= least]

    def _shape(self, found: Localization, *, polygons: bool) -> cvat.DetectionAnnotation:
        label = self.localizer.tags.index(found.tag)
        if found.mask is None or not found.mask.any():
            return cvat.rectangle(label, list(found.box or ()))
        if polygons:
            return cvat.polygon(label, polygon_of(found.mask).ravel().tolist())
        return cvat.mask(label, encode_mask(found.mask))


def create(model: str, device: str | None = None, **how: Any) -> CvatFunction:  # noqa: ANN401 - of Localizer.load
    """The function of a model, as ``cvat-cli`` makes it from its parameters ``-p NAME=TYPE:VALUE``.

    Args:
        model: a run folder or an ONNX file.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
        how: ``refine``, and options of :class:`colocam.config.options.Options`: ``masks``, ``presence``, ….
    """
    smooth = "offline" if "refine" in how else "none"  # images of a task are no video
    return CvatFunction(Localizer.load(model, device, **{"smooth": smooth, **how}))


def push(folder: Path, videos: Sequence[LabeledVideo], tasks: Sequence[int]) -> None:
    """Upload exported labels to tasks of the same videos; nothing is uploaded unless all of them fit.

    The address of the server and the access token are read from :data:`HOST` and :data:`TOKEN`. A task that has
    annotations is refused, since CVAT would remove them.

    Args:
        folder: an export to ``cvat`` or ``cvat-masks``.
        videos: the videos of the export.
        tasks: ids of the tasks, one for each video, in order.
    """
    if len(tasks) != len(videos):
        raise ArgumentError("push", f"must name one task for each table, got {len(tasks)} for {len(videos)}")
    with _client() as client:
        pairs = [(video, _fitting_task(client, task, video)) for video, task in zip(videos, tasks, strict=True)]
        for video, task in pairs:
            with _explained(client, task.id):
                task.import_annotations("CVAT 1.1", folder / f"{video.name}.xml")
            say(f"pushed {video.name}: {client.api_map.host}/tasks/{task.id}")


@contextmanager
def _client() -> Iterator[Client]:
    host, token = (os.environ.get(name, "") for name in (HOST, TOKEN))
    if not host or not token:
        unset = TOKEN if host else HOST
        raise ColocamError(
            f"set {HOST} to the address of CVAT and {TOKEN} to a personal access token: {unset} is empty"
        )
    try:
        client = Client(host, config=Config(status_check_period=1), check_server_version=False)
    except (CvatSdkException, ValueError) as error:
        raise ColocamError(f"{HOST} is not an address, got {host}: {first_line(error)}") from error
    with client:
        client.login(AccessTokenCredentials(token))
        client.organization_slug = os.environ.get(ORGANIZATION)
        yield client


def _fitting_task(client: Client, number: int, video: LabeledVideo) -> Task:
    """A task without annotations, of the frames of ``video`` and with labels of its classes."""
    with _explained(client, number):
        task = client.tasks.retrieve(number)
        labels = {label.name for label in task.get_labels()}
        meta, there = task.get_meta(), task.get_annotations()
    source = video.source
    where = f"task {number} of CVAT"
    if task.size != source.frames:
        raise ColocamError(
            f"{where} has {task.size} frames, {video.name} has {source.frames}: is it a different video?"
        )
    size = meta.frames[0].width, meta.frames[0].height
    if size != (source.width, source.height):
        stated = f"{size[0]}×{size[1]}, {video.name} has {source.width}×{source.height}"
        raise ColocamError(f"{where} has frames of {stated}: is it a different video?")
    names = tuple(PurePosixPath(frame.name).name for frame in meta.frames)
    if source.pictures and names != source.pictures:
        raise ColocamError(
            f"{where} has different images from {source.path}, or a different order: create it sorted naturally"
        )
    if absent := [tag for tag in LabelSet([video]).classes if tag not in labels]:
        raise ColocamError(f"{where} has no label {absent[0]!r}: add it in CVAT")
    if there.tags or there.shapes or there.tracks:
        raise ColocamError(
            f"{where} already has annotations, which an upload would delete: remove them in CVAT, or use another task"
        )
    return task


@contextmanager
def _explained(client: Client, task: int) -> Iterator[None]:
    """Turn an error of the server into one line."""
    host = client.api_map.host
    try:
        yield
    except ApiException as error:
        known = {401: f"is {TOKEN} valid?", 403: "may you change this task?", 404: "is there such a task?"}
        hint = known.get(error.status or 0, "try again later")
        raise ColocamError(f"CVAT at {host}, task {task}: {error.status} {error.reason}: {hint}") from error
    except (CvatSdkException, HTTPError) as error:
        raise ColocamError(f"CVAT at {host}, task {task}: {first_line(error)}") from error
    except (OpenApiException, TypeError) as error:  # an answer that lacks what cvat-sdk expects
        remedy = "install the version of cvat-sdk that the server has"
        raise ColocamError(f"CVAT at {host}, task {task}: {first_line(error)}: {remedy}") from error
