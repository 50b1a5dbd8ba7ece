r"""The machinery of training runs, which knows neither GraphGym nor a model.

:class:`~pyg_topomask.runs.run.Run` is a run in its folder; the other files are what it is made of.
"""
