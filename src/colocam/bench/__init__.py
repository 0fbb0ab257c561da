"""Measurements behind ``colocam bench NAME``; each module has ``run(device, json_path)``, which prints what it writes."""
