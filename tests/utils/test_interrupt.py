"""Ctrl-C: the first asks, the second stops, and the handlers are handed back."""

import signal
import threading

import pytest

from colocam.errors import InterruptedRunError
from colocam.utils.progress import end_like_ctrl_c, graceful_stop, raise_if_stopped, stop_requested


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_stops(number, capsys):
    before = signal.getsignal(number)
    with graceful_stop():
        assert not stop_requested()
        raise_if_stopped("nothing")
        signal.raise_signal(number)
        assert stop_requested()
        assert capsys.readouterr().err.count("\n") == 1
        with pytest.raises(InterruptedRunError, match="stopped in decoding"):
            raise_if_stopped("decoding")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert not stop_requested()
    assert signal.getsignal(number) is before


def test_off_the_main_thread_work_goes_on_without_handlers():
    seen = []

    def work():
        with graceful_stop():
            seen.append(stop_requested())
        with pytest.raises(LookupError, match="mine"), graceful_stop():
            raise LookupError("mine")
        seen.append("passed on")

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False, "passed on"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_command_that_is_terminated_ends_like_ctrl_c():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        end_like_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as nohup may have asked
        end_like_ctrl_c()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
