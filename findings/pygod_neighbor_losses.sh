#!/usr/bin/env bash
# pygod 1.1.0: the "KL divergence" of the detector GADNR is negative, and least for a wrong distribution. Its "W2 loss" ignores covariances.
#
# Expected: neigh_loss "KL represents the KL divergence loss, W2 represents the W2 loss" between the Gaussians of true and generated
# neighbors. Both are at least 0, and 0 only for equal distributions. 2 KL(true, generated) has log(det generated / det true).
# Seen: the fraction is inverted, also in the default loss of full batches. There, the loss falls without a bound as the generated covariance
# grows, so that training does not lead to the true one, and outlier scores are negative. In minibatches, it is least for a collapsed
# distribution. Of W2, a line break cuts off the second half: only the distance of the means is left. And both functions for
# minibatches detach their input: they have no gradient at all.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 scipy==1.17.1 numpy==2.4.6 scikit-learn==1.9.1 \
  networkx==3.6.1 setuptools==84.2.1
"$folder/venv/bin/pip" install --quiet --no-deps pygod==1.1.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from types import SimpleNamespace

import torch
from pygod.nn.functional import KL_neighbor_loss, W2_neighbor_loss
from pygod.nn.gadnr import GADNRBase
from torch.distributions import MultivariateNormal, kl_divergence

print(f'pygod {version("pygod")}')
n, d = 500, 4
torch.manual_seed(0)
true = torch.randn(n, d)
true -= true.mean(0)
settings = SimpleNamespace(degree_loss_func=torch.nn.MSELoss(), sample_time=1, full_batch=True,
                           lambda_loss1=1.0, lambda_loss2=0.0, lambda_loss3=0.0)  # fmt: skip
full, mini, exact = [], [], []
for scale in (0.5, 1.0, 2.0, 4.0):  # The generated neighbors have the same mean, and another scale.
    generated = (scale * true).requires_grad_()
    kl, w2 = (loss(generated, true, n, 'cpu') for loss in (KL_neighbor_loss, W2_neighbor_loss))
    assert not kl.requires_grad and not w2.requires_grad, 'this has changed'
    cov = true.t() @ true / (n - 1)
    right_w2 = (1 - scale) ** 2 * cov.trace().item()  # Here, the square root of one covariance is a multiple of that of the other.
    assert abs(w2) < 1e-6, 'this has changed'

    # The loss of full batches, for one node, with the covariances that the model passes: I for the true one, scale I for the other.
    wide = scale * torch.eye(d)
    info = [torch.ones(1), torch.det(wide).view(1), d, wide.inverse().unsqueeze(0), torch.zeros(1)]
    zero = torch.zeros(1, d)
    full.append(GADNRBase.loss_func(settings, zero, zero[:, :1], [zero], [info], torch.zeros(1))[0].item())
    exact.append(kl_divergence(MultivariateNormal(zero[0], torch.eye(d)), MultivariateNormal(zero[0], wide)).item())
    print(f'scale {scale}: full batch KL {full[-1]:.3f}, exact {exact[-1]:.3f}. Minibatch KL {kl.item():.3f}. '
          f'W2 {w2.item():.3f}, exact {right_w2:.3f}')  # fmt: skip
    mini.append(kl.item())
assert mini[0] < -1 and mini == sorted(mini), 'this has changed'  # A collapsed distribution has the least value.
assert full == sorted(full, reverse=True) and full[-1] < -1 and min(exact) == exact[1] == 0, 'this has changed'
PY
