r"""The hook that makes GraphGPS's layers know the attentions of this package."""
