"""How all tests run, and the fixtures of several rooms."""

import atexit
import gc
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.helpers.order_of_tests",
    "tests.helpers.shared_folders",
    "tests.helpers.videos",
    "tests.helpers.small_runs",
    "tests.helpers.command_line",
    "tests.helpers.box_segmenter",
]
"""Fixtures that several rooms use; those of one room stand in its own conftest.py."""

# A verdict must not hang on how busy the machine is, nor on a draw that nobody can repeat;
# --hypothesis-profile=explore draws other examples every time.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True, max_examples=50)
settings.load_profile("steady")

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it, as nohup does
atexit.register(gc.unfreeze)  # compiled modules complain at the end of the process if they are not freed


@pytest.fixture(autouse=True)
def _onednn():
    """A bfloat16 product on a CPU without it switches oneDNN off for the process; later tests would round otherwise."""
    yield
    if (torch := sys.modules.get("torch")) is not None:
        torch.backends.mkldnn.set_flags(True)
