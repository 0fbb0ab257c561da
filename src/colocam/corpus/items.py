"""What coordinator and workers tell each other. All of it can be pickled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from colocam.corpus.films import Film


class FrameRange(NamedTuple):
    """A range of a long film, in indices of frames; see :mod:`colocam.corpus.long_films`.

    Attributes:
        begin: first frame whose rows are kept.
        end: frame after the last; None for the end of the film.
        first: first frame to process.
        stop: frame after the last to process; None for the end of the film.
    """

    begin: int
    end: int | None
    first: int
    stop: int | None


@dataclass(frozen=True, slots=True)
class Item:
    """Work for one worker: a film, or one range of a long film."""

    film: Film
    range: FrameRange | None = None

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.film.name if self.range is None else f"{self.film.name} from frame {self.range.begin}"


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has loaded the model."""


@dataclass(frozen=True, slots=True)
class Known:
    """The key of the film is known; sent before it is decoded."""

    key: str


@dataclass(frozen=True, slots=True)
class Progress:
    """So many frames more are done."""

    frames: int


@dataclass(frozen=True, slots=True)
class Done:
    """The part of a film, or a range of it, is in storage, with so many frames and rows.

    ``content`` is the digest of the film, empty if it is not known.
    """

    key: str
    frames: int = 0
    rows: int = 0
    content: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """The film is long: label these ranges, then the film again, which joins them."""

    ranges: tuple[FrameRange, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """The item could not be done; ``again``: another attempt may succeed."""

    reason: str
    again: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """No item can be done: a full disk, a wrong option, a damaged model."""

    reason: str


@dataclass(frozen=True, slots=True)
class Died:
    """The worker ended without an answer."""

    reason: str


Message: TypeAlias = Ready | Known | Progress | Done | Split | Failed | Stop | Died
Result: TypeAlias = Done | Split | Failed | Stop
Report: TypeAlias = Callable[[Known | Progress], None]
Labeller: TypeAlias = Callable[[Item, Report], Result]
MakeLabeller: TypeAlias = Callable[[int], Labeller]
"""From the index of a worker to its labeller; it can be pickled, and loads the model."""
