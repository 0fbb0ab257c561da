"""Open a promptable segmenter with the engine that runs it."""

from pathlib import Path

from colocam.errors import ColocamError
from colocam.segment.segmenter import Segmenter


def load_segmenter(path: str | Path, device: str | None = None) -> Segmenter:
    """Open a segmenter.

    Args:
        path: a .safetensors file with the weights of MobileSAM, which PyTorch runs.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
    """
    path = Path(path)
    if not path.exists():
        raise ColocamError(f"no segmenter at {path}: give a .safetensors file of MobileSAM")
    from colocam.segment.mobile_sam import open_mobile_sam  # noqa: PLC0415 - one engine is imported, not all
    from colocam.utils.device import choose_device  # noqa: PLC0415

    return open_mobile_sam(path, choose_device(device))
