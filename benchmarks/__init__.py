r"""Benchmarks: one script a claim, one runner, results as tables and plots in :obj:`benchmarks/results`."""
