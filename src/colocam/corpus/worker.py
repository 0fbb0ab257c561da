"""One worker: takes items, labels them, and says how that went; a film that cannot be read costs only itself."""

import errno
import os
import signal
from multiprocessing.connection import Connection

from colocam.corpus.items import Failed, Item, Labeller, MakeLabeller, Message, Ready, Report, Result, Stop
from colocam.errors import ColocamError, first_line
from colocam.video.input import DecoderLostError, VideoError

STORAGE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
"""Errors of the storage, which no film is to blame for."""


def load(make: MakeLabeller, index: int) -> Labeller | Stop:
    """The labeller of a worker, or why there is none; for a process that has not loaded torch yet."""
    # With another number of threads, a network on a CPU adds in another order, and parts would depend on the machine.
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        return make(index)
    except ColocamError as error:
        return Stop(str(error))
    except Exception as error:  # noqa: BLE001 - it is reported
        return Stop(f"a worker cannot start: {type(error).__name__}: {first_line(error)}")


def attempt(labeller: Labeller, item: Item, report: Report) -> Result:
    """Label one item."""
    try:
        return labeller(item, report)
    except VideoError as error:
        return Failed(str(error), again=isinstance(error, DecoderLostError))
    except ColocamError as error:
        return Stop(str(error))
    except OSError as error:
        if error.errno in STORAGE:
            return Stop(f"cannot write: {error.strerror}: free some space and run the same command again")
        return Failed(str(error), again=True)
    except Exception as error:  # noqa: BLE001 - it is reported
        return Failed(f"{type(error).__name__}: {first_line(error)}", again=True)


def serve(connection: Connection, make: MakeLabeller, index: int) -> None:
    """Label the items that a coordinator sends, until it closes the connection; runs in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the coordinator, which ends its workers

    def send(message: Message) -> None:
        try:
            connection.send(message)
        except OSError:
            os._exit(1)  # the coordinator is gone; its successor does this item again

    labeller = load(make, index)
    send(labeller if isinstance(labeller, Stop) else Ready())
    while not isinstance(labeller, Stop):
        try:
            item = connection.recv()
        except (EOFError, OSError):
            return
        send(attempt(labeller, item, send))
