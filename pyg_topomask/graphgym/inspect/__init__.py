r"""What there is to choose from, and what masks and trained models look at."""
