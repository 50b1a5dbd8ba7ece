"""A stand-in for GraphGPS: its module names, registrations and order of calls, with as little behind them as tests need."""

from . import config, encoder, head, loader, loss, network  # noqa: F401
