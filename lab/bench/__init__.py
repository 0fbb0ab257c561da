"""Benchmarks of ``colocam bench NAME``: each module has ``run(device, json_path)``, which prints its results."""
