"""Synthetic tagged videos for the demo: reproducible, with true boxes in a separate table."""

from colocam.lab.world.make import World, make_world

__all__ = ["World", "make_world"]
