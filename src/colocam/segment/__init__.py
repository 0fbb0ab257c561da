"""Promptable segmenters: masks for prompts that are read from the heat maps of a trained model.

    heat maps ─ map_prompts ─► boxes and peaks ─ Segmenter ─► masks ─ mask_choice ─► one mask a frame ─► its box

A segmenter was trained with masks by others. Its results are reported apart from what is learnt from tags alone.
"""
