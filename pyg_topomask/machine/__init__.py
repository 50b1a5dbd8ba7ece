r"""Machine code of Numba. Every other module works without it."""
