r"""Training runs, independent of GraphGym and of models.

:class:`~pyg_topomask.apps.runs.run.Run` is a run in a folder. The other files are its components.
"""
