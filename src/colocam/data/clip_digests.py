"""Know a clip by the content of its files, wherever they are."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from colocam.errors import ColocamError
from colocam.types import Clip
from colocam.utils.device import cores
from colocam.utils.digests import FileDigests
from colocam.utils.progress import progress


def with_digests(clips: Sequence[Clip], digests: FileDigests) -> tuple[Clip, ...]:
    """The clips with the digests of their files; files that ``digests`` does not remember are read."""
    with progress("checking videos", len(clips), unit="clips") as advance, ThreadPoolExecutor(cores()) as pool:
        digested = []
        try:
            for clip, digest in zip(clips, pool.map(lambda clip: clip_digest(clip, digests), clips), strict=True):
                digested.append(replace(clip, digest=digest))
                advance()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return tuple(digested)


def refuse_changed(clip: Clip, digests: FileDigests) -> None:
    """Raise an error if the files of a clip are there with another content than ``clip.digest`` says."""
    if clip.digest and clip_digest(clip, digests) not in {"", clip.digest}:
        raise ColocamError(
            f"{clip.path} was changed since the run was begun: restore it, or train again in another folder"
        )


def clip_digest(clip: Clip, digests: FileDigests) -> str:
    """Digest of the file, or of names and contents of the images; empty if they cannot be read."""
    try:
        if clip.frames:
            return digests.of_files(clip.frames)
        return digests.of_file(clip.path) if clip.path.is_file() else ""  # never a pipe, which would block
    except OSError:
        return ""
