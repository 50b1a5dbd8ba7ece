r"""The standalone runner, which trains the model of a YAML."""
