r"""Tasks of others whose labels depend on distant nodes: distances, eccentricities, diameters, and energies of spins."""
