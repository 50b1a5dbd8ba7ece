r"""Small tools that know nothing of graphs: checks, options, files, random numbers, transforms of ``torch.func``."""
