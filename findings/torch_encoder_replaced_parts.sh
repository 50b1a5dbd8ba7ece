#!/usr/bin/env bash
# torch 2.13.0: TransformerEncoderLayer does not call parts that were replaced, such as low-rank adapters, when it is evaluated.
#
# Expected: the output in eval() is the same with and without torch.no_grad(). The documentation lists when forward() uses "a
# special optimized implementation", among others for the activations "relu", "gelu", torch.functional.relu and
# torch.functional.gelu. A part with a computation of its own is called, as one with hooks is.
# Seen: in eval() under no_grad(), the layer reads the weights of its parts, and never calls them. So an attention with a bias
# of its own (a subclass of MultiheadAttention), a feed-forward layer with a low-rank adapter, or a subclass of LayerNorm, are
# trained, and left out in the evaluation, without a warning. GELU(approximate="tanh") is taken for the exact activation.
# Parts with hooks are called, since https://github.com/pytorch/pytorch/issues/128413
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
from torch.nn import GELU, LayerNorm, Linear, MultiheadAttention, Parameter, TransformerEncoderLayer

print(f'torch {torch.__version__}')


class DistanceAttention(MultiheadAttention):
    def forward(self, query, key, value, **options):
        position = torch.arange(query.size(1))
        options['attn_mask'] = -(position.view(-1, 1) - position).abs().to(query.dtype)
        return super().forward(query, key, value, **options)


class Adapter(Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, dtype=torch.double)
        self.down, self.up = (Parameter(torch.randn(size, dtype=torch.double)) for size in ((2, inputs), (outputs, 2)))

    def forward(self, x):
        return super().forward(x) + x @ self.down.t() @ self.up.t()


class CenteredNorm(LayerNorm):
    def forward(self, x):
        return super().forward(x - x.mean(1, keepdim=True))


def by_numpy(layer, x):  # the layer with an adapter as its second feed-forward layer, with self_attn as a function
    norm = lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)  # noqa: E731
    array = lambda name: layer.get_parameter(name).detach().numpy()  # noqa: E731
    attended = layer.self_attn(x, x, x, need_weights=False)[0].detach().numpy()
    h = norm(x.numpy() + attended)
    hidden = np.maximum(h @ array('linear1.weight').T + array('linear1.bias'), 0)
    change = hidden @ array('linear2.down').T @ array('linear2.up').T
    return norm(h + hidden @ array('linear2.weight').T + array('linear2.bias') + change)


seen = {}
for name in ('as it is', 'attention', 'adapter', 'norm', 'tanh'):
    torch.manual_seed(0)
    options = {'activation': GELU(approximate='tanh')} if name == 'tanh' else {}
    layer, x = TransformerEncoderLayer(8, 2, 16, batch_first=True, dtype=torch.double, **options), torch.randn(2, 5, 8).double()
    if name == 'attention':
        layer.self_attn = DistanceAttention(8, 2, batch_first=True, dtype=torch.double)
    elif name == 'adapter':
        layer.linear2 = Adapter(16, 8)
    elif name == 'norm':
        layer.norm1 = CenteredNorm(8, dtype=torch.double)
    layer.eval()
    slow = layer(x).detach()
    with torch.no_grad():
        fast = layer(x)
    seen[name] = (fast - slow).abs().max().item()
    print(f'{name}: with and without no_grad() differ by {seen[name]:.2g}')
    if name == 'adapter':
        right = by_numpy(layer, x)
        print(f'{name}: the difference to NumPy is {abs(slow.numpy() - right).max():.2g} without no_grad(), '
              f'{abs(fast.numpy() - right).max():.2g} with it')  # fmt: skip
        assert np.allclose(slow, right) and not np.allclose(fast, right, atol=0.1), 'this has changed'
assert seen.pop('as it is') < 1e-9 and 1e-5 < seen.pop('tanh') < 1e-2 and min(seen.values()) > 0.1, 'this has changed'
PY
