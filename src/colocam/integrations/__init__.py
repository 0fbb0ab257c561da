"""Adapters to the tools of others, one file for each; their packages are extras and are imported on first use.

No file here but the export of ONNX files imports torch: a run folder imports it when the model is opened.
The modules in ``__all__`` are public; the others serve commands.
"""

__all__ = ["cvat_tasks", "fiftyone_sample", "hub_model", "label_studio_backend", "supervision_detections"]
