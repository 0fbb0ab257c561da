"""Loops over pixels and boxes in C, built with the wheel; see ``colocam.utils.jit``."""
