"""A small synthetic world of tagged videos: hard, reproducible, with its truth written apart."""

from colocam.data.world.world import World, make_world

__all__ = ["World", "make_world"]
