"""Numbers of the configuration and of model cards, with their bounds.

Tests: tests/config/test_config.py, tests/config/test_card.py.
"""

from typing import Annotated

from pydantic import Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Focus = bool | Annotated[float, Field(ge=0, le=4)]
"""Power of the focus on a class (docs/method/focus.md); true is 1."""
Count = Annotated[int, Field(ge=1)]
Width = Annotated[int, Field(ge=1, le=4096)]
"""Channels of a convolution; from 4096 to 4096 channels it already has 150 million weights."""
Side = Annotated[int, Field(ge=1, le=2048)]
"""Side in pixels of what a network reads; a frame of 2048² already takes 2 GB."""
