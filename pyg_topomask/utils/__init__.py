r"""Small tools that know nothing of graphs: checks, options, files, digests, transforms of ``torch.func``."""
