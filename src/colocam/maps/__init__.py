"""From network output to the maps that boxes are read from: color mean, focus, and maps of whole data sets.

Private.
"""

__all__: list[str] = []
