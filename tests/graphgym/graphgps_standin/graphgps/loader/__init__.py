from . import master_loader  # noqa: F401
