"""The demo and its world: synthetic tagged videos with true boxes in a separate table."""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.demo.world import make_world

__all__ = ["make_world"]

__getattr__, __dir__ = lazy_names(__name__, {"make_world": "colocam.demo.world"})  # the command imports no painter
