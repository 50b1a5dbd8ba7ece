#!/usr/bin/env bash
# performer-pytorch 1.1.4: the estimate of the softmax kernel is biased: its random directions are not uniform, but point to one side.
#
# Expected: FastAttention estimates exp(q.k) by the positive features of Performer (Choromanski et al. 2021). This is unbiased, as each row
# of the random orthogonal matrices is uniform on the sphere. So the mean over many draws is exp(q.k), whatever the direction of q is.
# Seen: the matrices are the Q of a QR decomposition, whose signs LAPACK chooses: all entries of the diagonal of Q but the last are negative,
# and the mean of direction i has a negative entry i, of about -0.75. A uniform matrix needs the signs of the diagonal of R, too. So the
# kernel of vectors with positive entries (after a ReLU, say) is too small, and that of the negated vectors, which is the same one, too
# large: by 15 to 25 % for 16 channels. New draws do not help.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps performer-pytorch==1.1.4 einops==0.8.2 axial-positional-embedding==0.3.12 \
  local-attention==1.11.2 hyper-connections==0.4.11 torch-einops-utils==0.2.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from performer_pytorch.performer_pytorch import gaussian_orthogonal_random_matrix, softmax_kernel

print(f'performer-pytorch {version("performer-pytorch")}')
torch.manual_seed(0)
dim, draws = 16, 4000


def uniform(rows, columns):
    q, r = torch.linalg.qr(torch.randn(columns, columns))
    return torch.randn(rows, columns).norm(dim=1).view(-1, 1) * (q * r.diagonal().sign()).t()


seen = {}
for name, draw in (('performer-pytorch', gaussian_orthogonal_random_matrix), ('uniform', uniform)):
    rows = torch.stack([draw(dim, dim) for _ in range(draws)])
    diagonal = rows.mean(0).diagonal()
    print(f'{name}: mean of entry i of direction i: {diagonal[:4].tolist()}')
    for sign in (1, -1):
        x = torch.full((dim,), sign * (0.5 / dim) ** 0.5)
        # Positive features: exp(w.q - q^2/2) exp(w.k - k^2/2), here for q = k = x.
        values = (2 * rows @ x - x @ x).exp().mean(1)
        seen[name, sign] = values.mean().item()
        print(f'  entries of sign {sign:2d}: {values.mean():.3f} +- {values.std() / draws**0.5:.3f}, exp(q.k) = {(x @ x).exp():.3f}')
    if name == 'uniform':
        assert diagonal.abs().max() < 0.1
    else:
        assert (diagonal[:-1] < -0.4).all(), 'this has changed'
right = 0.5
for (name, sign), value in seen.items():
    error = value / torch.tensor(right).exp().item() - 1
    assert abs(error) < 0.08 if name == 'uniform' else error * sign < -0.12, 'this has changed'

# The features of the package are these, up to a factor that attention divides by.
x, w = torch.randn(1, 1, 5, dim), gaussian_orthogonal_random_matrix(dim, dim)
scaled = x[0, 0] * dim**-0.25
feature = (scaled @ w.t() - scaled.pow(2).sum(1, keepdim=True) / 2).exp()
ratio = softmax_kernel(x, projection_matrix=w, is_query=False, eps=0.0)[0, 0] / feature
assert ratio.allclose(ratio[0, 0].expand_as(ratio), rtol=1e-3), 'this has changed'
PY
