r"""Programs on top of the library: training, inspection, pictures, data sets, recommendation, kernels.

The core never imports them.
"""
