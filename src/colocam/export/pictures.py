"""The listed frames of the videos as JPEG files, each video decoded once."""

from collections.abc import Callable
from pathlib import Path

import cv2

from colocam.data.video import decode
from colocam.errors import ColocamError
from colocam.export.labels import LabelledVideo
from colocam.progress import progress

QUALITY = 95


def write_pictures(videos: list[LabelledVideo], target: Callable[[LabelledVideo, int], Path]) -> None:
    """Write every listed frame.

    Args:
        videos: whose frames.
        target: the file for a frame of a video, in a folder that exists.
    """
    for video in videos:
        source, wanted = video.source, set(video.listed.tolist())
        if not source.path.exists():
            raise ColocamError(f"--images needs the video, and {source.path} is not there: give --video FILE")
        with progress(f"writing frames of {source.file}", len(wanted), unit="frames") as advance:
            for frame in decode(source.path):
                if frame.index not in wanted:
                    continue
                height, width = frame.image.shape[:2]
                if (width, height) != (source.width, source.height):
                    raise ColocamError(
                        f"{source.path} is {width}×{height}, the table's video {source.width}×{source.height}: "
                        "give the right one with --video FILE"
                    )
                _, jpeg = cv2.imencode(
                    ".jpg", cv2.cvtColor(frame.image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
                )
                target(video, frame.index).write_bytes(jpeg.tobytes())
                wanted.discard(frame.index)
                advance()
                if not wanted:
                    break
        if wanted:
            raise ColocamError(f"{source.path} has no frame {min(wanted)}, which {video.name} lists: give --video FILE")
