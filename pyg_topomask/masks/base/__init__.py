r"""What masks have in common: the base classes, their parameters, and the series that they start from."""
