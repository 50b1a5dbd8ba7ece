r"""Data sets as GraphGym loads them, their transforms, and the loaders of batches."""
