r"""Data sets for GraphGym, their transforms, and loaders of batches."""
