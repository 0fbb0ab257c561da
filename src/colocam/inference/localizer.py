"""Localizer: open a trained model, put in a video, get a :class:`Localization` per frame."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

from colocam.config.card import Card
from colocam.config.options import DEFAULT, Options, from_keywords
from colocam.errors import ColocamError
from colocam.inference.network import Network, OutputShape, open_onnx
from colocam.inference.passes import AnyNetwork, Passes
from colocam.inference.pipeline import Settings, run_pipeline
from colocam.maps.prior import Prior, open_prior
from colocam.segment import load_segmenter
from colocam.segment.segmenter import Segmenter
from colocam.temporal.smoothing import Shots
from colocam.types import Localization, VideoFrame
from colocam.utils.device import choose_device
from colocam.utils.extras import not_installed
from colocam.video.frame_choice import FrameChoice
from colocam.video.frame_ring import FrameLayout


def open_network(model: Path, device: str | None = None) -> tuple[Passes, Card]:
    """Open a trained model with the runtime that runs it.

    Args:
        model: a run folder, which PyTorch runs, or an ONNX file written by ``colocam export-model``, which onnxruntime
            runs on the CPU without importing torch.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one and the model is a run folder.
    """
    if model.suffix.lower() == ".onnx" and not model.is_dir():
        return _owned(*open_onnx(model, device))
    try:
        from colocam.inference.torch_network import open_torch  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ColocamError(
            f"{not_installed(error, f'the run folder {model}')}, or give an ONNX file of 'colocam export-model'"
        ) from error
    return _owned(*open_torch(model, device))


def _owned(network: Network, card: Card) -> tuple[Passes, Card]:
    return Passes(network, output_shape(card)), card


def output_shape(card: Card) -> OutputShape:
    """What the outputs of a model must be."""
    return OutputShape(len(card.tags), card.size, card.map_size or card.size)


class Localizer:
    """Says what each frame of a video shows and where.

    Example:
        >>> localizer = Localizer.load("runs/pets")          # doctest: +SKIP
        >>> for found in localizer("holiday.mp4"):           # doctest: +SKIP
        ...     print(found.pts, found.tag, found.box)

    Attributes:
        network: computes class scores and maps, for any number of threads.
        card: what is stored with the model.
        segmenter: gives a mask for each object, whose extent is the box; None: boxes of the heat maps.
        prior: weighs the maps by where objects stand out; None: they stay as they are.
        source: folder or file that the model was loaded from; None: it was built in memory.
        options: see :class:`colocam.config.options.Options`.
        settings: the options; where they say nothing, what the card says.
    """

    def __init__(
        self,
        network: AnyNetwork | Network,
        card: Card,
        options: Options = DEFAULT,
        *,
        segmenter: Segmenter | None = None,
        prior: Prior | None = None,
    ) -> None:
        self.network = network if isinstance(network, AnyNetwork) else Passes(network, output_shape(card))
        self.card = card
        self.segmenter = segmenter
        self.prior = prior
        self.source: Path | None = None
        self.options = options
        self.settings = Settings.of(options, card, refined=segmenter is not None)

    def with_options(self, **changes: Any) -> "Localizer":  # noqa: ANN401 - of the fields
        """The same open model with some other :class:`colocam.config.options.Options`."""
        return self._changed(self.segmenter, replace(self.options, **changes))

    def without_segmenter(self) -> "Localizer":
        """The same open model, without refining its boxes."""
        return self if self.segmenter is None else self._changed(None, replace(self.options, refine=None))

    def _changed(self, segmenter: Segmenter | None, options: Options) -> "Localizer":
        other = Localizer(self.network, self.card, options, segmenter=segmenter, prior=self.prior)
        other.source = self.source
        return other

    @classmethod
    def open(cls, run: str | Path, options: Options = DEFAULT) -> "Localizer":
        """Open the model of a run folder, or an ONNX file made from it; see :func:`open_network`.

        Args:
            run: the folder or file.
            options: how to run it.
        """
        network, card = open_network(Path(run), options.device)
        segmenter = None if options.refine is None else load_segmenter(options.refine, options.device)
        gpu = choose_device(options.device) if network.on_gpu else None
        prior = None if options.prior is None else open_prior(options.prior, gpu)
        localizer = cls(network, card, options, segmenter=segmenter, prior=prior)
        localizer.source = Path(run)
        return localizer

    @classmethod
    @from_keywords
    def load(cls, run: str | Path, options: Options) -> "Localizer":
        """:meth:`open` with the fields of :class:`colocam.config.options.Options` as keywords.

        For example ``Localizer.load("runs/pets", "cuda", smooth="online")``.
        """
        return cls.open(run, options)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        device: str | None = None,
        *,
        revision: str | None = None,
        token: str | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        **options: Any,  # noqa: ANN401 - of the fields
    ) -> "Localizer":
        """Open a model of the Hugging Face hub, or a folder of :meth:`save_pretrained` (extra ``hub``).

        Args:
            name: a repository, ``owner/name``, or a folder.
            device: as in :meth:`load`.
            revision: branch, tag or commit of the repository.
            token: access token; None: the stored one.
            cache_dir: where downloads are stored; None: the cache of the hub.
            local_files_only: use what was downloaded before.
            options: as in :meth:`load`.
        """
        from colocam.integrations.hub_model import fetch  # noqa: PLC0415 - an extra

        folder = fetch(name, revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only)
        return cls.load(folder, device, **options)

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write weights, model.json and a model card into a folder, as the Hugging Face hub holds them."""
        from colocam.integrations.hub_model import save  # noqa: PLC0415

        return save(self._folder(), Path(folder))

    def push_to_hub(self, name: str, **how: Any) -> str:  # noqa: ANN401 - of ModelHubMixin
        """Upload the model to the repository ``owner/name``; see :func:`colocam.integrations.hub_model.push`."""
        from colocam.integrations.hub_model import push  # noqa: PLC0415

        return push(self._folder(), name, **how)

    def _folder(self) -> Path:
        if self.source is None or not self.source.is_dir():
            raise ColocamError(f"only the model of a run folder can be saved, got {self.source or 'one in memory'}")
        return self.source

    @property
    def tags(self) -> tuple[str, ...]:
        """The classes this model knows."""
        return self.card.tags

    @property
    def reads_images(self) -> bool:
        """Whether frames need their images."""
        return self.segmenter is not None or self.settings.looks > 1

    @property
    def columns(self) -> list[str]:
        """The optional columns of a localization table that this localizer fills."""
        wanted = {
            "track": self.options.smooth != "none",
            "presence": True,
            "margin": not self.options.instances,
            "mask": self.options.masks or self.segmenter is not None,
            "refined": self.segmenter is not None,
        }
        return [name for name, there in wanted.items() if there]

    def __call__(
        self,
        video: str | Path,
        *,
        format: str | None = None,  # noqa: A002 - FFmpeg's word
        every: int = 1,
        fps: float | None = None,
        start: float | None = None,
        end: float | None = None,
        frames: tuple[int | None, int | None] = (None, None),
    ) -> Iterator[Localization]:
        """Localize in the frames of a video, in order; only some frames are in memory at a time.

        By default all frames; to choose some, see :class:`colocam.video.frame_choice.FrameChoice`.

        Args:
            video: a file, a folder of images, ``-`` for the standard input, an address (``rtsp://…``), or a camera.
            format: FFmpeg's name for the input format, e.g. ``v4l2`` for a camera; None: FFmpeg detects it.
            every: every N-th frame.
            fps: about so many frames per second.
            start: first second.
            end: second to stop at.
            frames: first index, and index to stop at.
        """
        from colocam.video.fence import open_video  # noqa: PLC0415 - frames in memory need no FFmpeg
        from colocam.video.input import VideoInput  # noqa: PLC0415

        choice = FrameChoice(every, fps, start, end, frames)
        # The stream is closed before the reader, because its threads read from the reader.
        with (
            open_video(VideoInput(str(video), format)) as reader,
            closing(
                self.stream(reader.frames(choice, layout_for(self)), live=reader.source.live, images=False)
            ) as stream,
        ):
            for _, row in stream:
                yield row

    def stream(
        self,
        frames: Iterable[VideoFrame],
        *,
        live: bool = False,
        images: bool = True,
        shots: Shots | None = None,
        passed: Callable[[int], object] = int,
        stopping: tuple[Event, ...] = (),
    ) -> Generator[tuple[VideoFrame, Localization], None, None]:
        """Localize in frames that are already decoded; each frame is returned with its localization.

        Each stage runs in its own thread. The same frames give the same result, whatever ``batch`` is. With a live
        source, a network pass has one frame, and its kernels may round differently.

        Args:
            frames: in order.
            live: whether frames arrive as they are filmed; then each is processed without waiting for the next.
            images: whether returned frames keep their images. If not, only the size is kept, and large frames take no
                more memory than small ones. A segmenter and a second look always keep the images.
            shots: filled as the cuts are passed, so that ranges of a video can be joined.
            passed: called, in another thread, with the number of frames that passed the network, or the segmenter;
                their results may wait for later frames.
            stopping: once one of them is set, this ends with an error as soon as it can, without waiting for the
                running pass.
        """
        return run_pipeline(
            frames,
            self.network,
            self.settings,
            self.segmenter,
            self.prior,
            live=live,
            images=images or self.reads_images,
            shots=shots,
            passed=passed,
            stopping=stopping,
        )


def layout_for(localizer: Localizer, *, images: bool = False) -> FrameLayout:
    """What to read of each frame: it is resized where it is decoded; segmenters and second looks need the image."""
    return FrameLayout(localizer.card.size, images=images or localizer.reads_images)
