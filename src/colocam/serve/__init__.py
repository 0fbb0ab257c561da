"""``colocam serve``: a page in the browser to see what a model finds in videos, to correct it and to export it.

The page is plain ES modules in ``page/``; it calls the routes in ``*_routes.py``. All in the folder of the
server but what people correct can be computed again.

A *correction* is what a person does in one step; undo and redo are corrections, too. Each of its *actions* says one
thing about one object in a stretch of frames. An *event* is a correction as it is stored: with version, time and a name
(:mod:`colocam.serve.store`). *Marks* are what all corrections together say about each frame
(:mod:`colocam.serve.marks`). ``labels.Correction``, here ``FrameCorrection``, is one frame of them in a file.

Private: the command is the interface.
"""

__all__: list[str] = []
