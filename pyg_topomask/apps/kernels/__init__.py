r"""Masks as graph kernels, for Gaussian processes with GPyTorch and for scikit-learn. They need the extra :obj:`gp`."""

try:
    import gpytorch  # noqa: F401
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError(f'pyg_topomask.apps.kernels needs {error.name}: install pyg_topomask with its extra [gp]') from error

from pyg_topomask.apps.kernels.gaussian_process import MaskKernel, sample_posterior
from pyg_topomask.apps.kernels.graph_random_features import GraphRandomFeatures

__all__ = ['GraphRandomFeatures', 'MaskKernel', 'sample_posterior']
