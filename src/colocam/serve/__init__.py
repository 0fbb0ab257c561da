"""``colocam serve``: a page in the browser to see what a model finds in videos, to correct it and to export it.

The page is plain ES modules in ``page/``; it calls the routes in ``*_routes.py``. What people correct is stored
as events (:mod:`colocam.serve.store`); everything else in the folder of the server can be computed again.
"""
