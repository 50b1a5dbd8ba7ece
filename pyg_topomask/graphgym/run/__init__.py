r"""The standalone runner, which trains what a YAML describes."""
