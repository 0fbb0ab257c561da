"""Promptable segmenters: masks for prompts that are read from the heat maps of a trained model.

    heat maps ─ map_prompts ─► boxes and peaks ─ Segmenter ─► masks ─ best_path ─► one mask a frame ─► its box

A segmenter was trained with masks by others. Its results are reported apart from what is learned from tags alone.
"""

from pathlib import Path

from colocam.errors import ColocamError
from colocam.segment.segmenter import Segmenter
from colocam.utils.extras import not_installed
from colocam.utils.files import stored

__all__ = ["Segmenter", "load_segmenter"]

WANTED = "give MobileSAM's weights as .safetensors, or 'ENCODER.onnx,DECODER.onnx', or a folder that holds this pair"
_ONNX = {".onnx", ".ort"}


def load_segmenter(path: str | Path, device: str | None = None) -> Segmenter:
    """Open a segmenter.

    Args:
        path: a .safetensors file with the weights of MobileSAM, which PyTorch runs; or an encoder and a decoder of SAM,
            MobileSAM or SAM 2 as ONNX files, written ``ENCODER,DECODER`` or as the folder that holds the two, which
            onnxruntime runs without importing torch.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one. ONNX files run on the CPU.
    """
    files = segmenter_files(path)
    if len(files) == 2:
        from colocam.segment.onnx_segmenter import open_onnx_segmenter  # noqa: PLC0415 - one engine is imported, not all

        return open_onnx_segmenter(*files)
    try:
        from colocam.segment.sam import open_mobile_sam  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise not_installed(error, str(path)) from error
    from colocam.utils.device import choose_device  # noqa: PLC0415

    return open_mobile_sam(files[0], choose_device(device))


def segmenter_files(path: str | Path) -> tuple[Path, ...]:
    """The files of a segmenter: one .safetensors file, or two of ONNX."""
    names = [Path(part.strip()) for part in str(path).split(",")]
    if len(names) == 1 and names[0].is_dir():
        names = sorted(one for one in names[0].iterdir() if one.suffix.lower() in _ONNX)
        if len(names) != 2:
            raise ColocamError(f"{path} holds {len(names)} ONNX files, not an encoder and a decoder: {WANTED}")
    for name in names:
        if not stored(name).is_file():
            raise ColocamError(f"no segmenter at {name}: {WANTED}")
    endings = [name.suffix.lower() for name in names]
    if endings != [".safetensors"] and not (len(names) == 2 and _ONNX.issuperset(endings)):
        raise ColocamError(f"{path} is not a segmenter: {WANTED}")
    return tuple(names)
