"""A small synthetic world of tagged videos: hard, reproducible, with its truth written apart."""

from colocam.lab.world.make import World, make_world

__all__ = ["World", "make_world"]
