r"""Exact search for the keys with the largest inner products, by interchangeable backends."""
