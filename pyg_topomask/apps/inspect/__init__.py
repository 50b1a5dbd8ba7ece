r"""The catalog of names, and inspection of masks and trained models."""
