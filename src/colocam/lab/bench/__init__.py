"""Measurements behind ``colocam bench NAME``: each module has ``run(device, json_path)`` and prints what it writes."""
