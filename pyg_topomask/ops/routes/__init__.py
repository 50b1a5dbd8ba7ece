r"""The routes of masked linear attention, a file for each."""
