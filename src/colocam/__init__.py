"""Boxes in videos from one tag per video."""
