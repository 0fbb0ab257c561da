"""Open a trained model with the engine that runs it."""

from pathlib import Path

from colocam.config.card import Card
from colocam.errors import ColocamError
from colocam.inference.network import Network
from colocam.utils.extras import not_installed


def open_network(model: Path, device: str | None = None) -> tuple[Network, Card]:
    """Open a trained model.

    Args:
        model: a run folder, which PyTorch runs, or an ONNX file written by ``colocam export-model``, which onnxruntime
            runs on the CPU without importing torch.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one and the model is a run folder.
    """
    if model.suffix.lower() == ".onnx" and not model.is_dir():
        from colocam.inference.onnx_network import open_onnx  # noqa: PLC0415 - one runtime is imported, not both

        return open_onnx(model, device)
    try:
        from colocam.inference.torch_network import open_torch  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ColocamError(
            f"{not_installed(error, f'the run folder {model}')}, or give an ONNX file of 'colocam export-model'"
        ) from error
    return open_torch(model, device)
