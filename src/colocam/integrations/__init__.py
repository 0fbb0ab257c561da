"""Adapters to the tools of others, one file for each; their packages are extras and are imported on first use.

No file here imports torch: what needs it, a run folder, imports it when the model is opened.
"""
