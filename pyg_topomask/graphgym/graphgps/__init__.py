r"""The hook that adds the attentions of this package to GraphGPS's layers."""
