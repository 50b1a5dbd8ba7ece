from . import gps_model, multi_model  # noqa: F401
