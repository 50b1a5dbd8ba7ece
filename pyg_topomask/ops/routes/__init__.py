r"""The routes of masked linear attention, one per file."""
