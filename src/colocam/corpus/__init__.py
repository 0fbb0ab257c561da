"""Label a corpus: a localisation table for each film of a catalogue, by many processes on one or many machines.

    films (catalogue, shard) ─► coordinator ─► pool of workers (local processes or Ray) ─► parts/ab/<key>.parquet

What is done is known from the parts in storage alone. A part is named by a digest of the content of its film, of the
model and of the options, and appears as a whole. So an item may be executed twice, or by two machines at once: both
write the same bytes to the same name.
"""
