"""Masks, layers and transforms on a device that is not the CPU: tensors do not mix, and reads by the host are counted."""

import json
from pathlib import Path

import pytest
from forked import Forked
from test_cuda import LAYERS, MASKS, TRANSFORMS
from torch.utils import backend_registration

#: What reads numbers on a prepared graph, by how its name begins, and why.
READ = {
    'mask heat_': 'the learned times decide how many terms a heat kernel has',
    'layer asymmetric_grf_looked_at': 'the number of pairs that are returned',
    'layer grf_softmax_looked_at': 'the number of pairs that are returned',
    'layer kmip_looked_at': 'the number of pairs that are returned',
}


@pytest.mark.skipif(
    not hasattr(backend_registration, '_setup_privateuseone_for_python_backend'),
    reason='this torch has no devices written in Python',
)
def test_results_on_a_device_without_reads_on_prepared_graphs() -> None:
    status, stdout, stderr = Forked('pretended_run.py', cwd=Path(__file__).parent).wait(timeout=600)
    assert status == 0, stderr
    results = json.loads(stdout)
    assert results.pop('self-test') == {
        'mixing': 'aten::add.Tensor: tensors of the device and of the CPU, of shapes [(3,)]',
        'numbers': None,
        'reads': ['aten::_local_scalar_dense', 'aten::_to_copy', 'aten::index.Tensor', 'aten::nonzero'],
    }
    assert len(results) == len(MASKS) + len(LAYERS) + len(TRANSFORMS)
    assert not {name: each['wrong'] for name, each in results.items() if each['wrong'] is not None}
    assert {name for name, each in results.items() if each['reads']} == {
        name for name in results if name.startswith(tuple(READ))
    }
