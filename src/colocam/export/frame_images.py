"""Write the listed frames of videos as image files: a video is decoded once, image files are copied unchanged."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import cv2

from colocam.errors import ArgumentError, ColocamError
from colocam.export.labels import LabelledVideo
from colocam.types import VideoFrame
from colocam.utils.files import stored
from colocam.utils.progress import progress
from colocam.video.fence import decode, read_image
from colocam.video.images import is_upright

QUALITY = 95


def write_images(videos: Sequence[LabelledVideo], target: Callable[[LabelledVideo, int], Path]) -> None:
    """Write every listed frame.

    Args:
        videos: the videos.
        target: gives the file for a frame of a video, in a folder that exists; its ending decides the format.
    """
    for video in videos:
        source, wanted = video.source, set(video.listed.tolist())
        if not stored(source.path).exists():
            raise ArgumentError("images", f"need the video, but {source.path} does not exist: name it with `videos`")
        with progress(f"writing frames of {source.file}", len(wanted), unit="frames") as advance:
            for frame in _frames(video):
                if frame.index not in wanted:
                    continue
                height, width = frame.image.shape[:2]
                if (width, height) != (source.width, source.height):
                    raise ColocamError(
                        f"{source.path} is {width}×{height}, but the table is of a video of "
                        f"{source.width}×{source.height}: name the right one with `videos`"
                    )
                _write(video, frame, target(video, frame.index))
                wanted.discard(frame.index)
                advance()
                if not wanted:
                    break
        if wanted:
            raise ColocamError(
                f"{source.path} has no frame {min(wanted)}, which {video.name} lists: name the right video with "
                "`videos`"
            )


def _frames(video: LabelledVideo) -> Iterator[VideoFrame]:
    """At least the listed frames; images by their names, since the folder may have changed."""
    if not video.source.pictures:
        yield from decode(video.source.path)
        return
    for frame in video.listed.tolist():
        path = video.source.path / video.source.pictures[frame]
        image = read_image(path)
        if image is None:
            raise ColocamError(f"{path} cannot be read, but {video.name} lists it: name the folder with `videos`")
        yield VideoFrame(frame, 0.0, image)


def _write(video: LabelledVideo, frame: VideoFrame, target: Path) -> None:
    """Copy the original file if it has the right format and needs no rotation, else encode the frame."""
    if video.source.pictures:
        original = video.source.path / video.source.pictures[frame.index]
        if original.suffix.lower() == target.suffix.lower() and is_upright(original):
            shutil.copyfile(original, target)
            return
    quality = [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
    _, encoded = cv2.imencode(target.suffix, cv2.cvtColor(frame.image, cv2.COLOR_RGB2BGR), quality)
    target.write_bytes(encoded.tobytes())
