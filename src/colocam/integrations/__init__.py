"""Adapters to the tools of others, one file for each; their packages are extras and are imported on first use.

No file here but the export of ONNX files imports torch: a run folder imports it when the model is opened.
"""
