r"""Distances, eccentricities and diameters of graphs: the benchmark of the A-DGN paper, with masks and without."""
