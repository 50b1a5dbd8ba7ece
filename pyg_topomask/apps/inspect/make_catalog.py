r"""The catalog of names with one-line descriptions from docstrings.

``python -m pyg_topomask.apps.inspect.make_catalog`` writes it to the file that ``pyg-topomask list`` reads.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import pyg_topomask.apps.datasets
import pyg_topomask.masks
import pyg_topomask.nn.models
import pyg_topomask.transforms
from pyg_topomask.apps.catalog import FILE, Sections
from pyg_topomask.apps.datasets import DATASETS
from pyg_topomask.feature_maps.names import FEATURE_MAPS
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, ATTN_TYPES
from pyg_topomask.graphgym.names.layers import LOCAL_LAYERS
from pyg_topomask.graphgym.names.masks import MASKS
from pyg_topomask.masks.base.series import KERNELS
from pyg_topomask.walks.steps import SAMPLERS


def first_sentence(thing: Any) -> str:
    r"""Returns the first sentence of a docstring, without markup and without the reference to a paper."""
    text = ' '.join((thing.__doc__ or '').split())
    for pattern, replacement in _MARKUP:
        text = re.sub(pattern, replacement, text)
    return text


#: Applied in this order.
_MARKUP = [
    (r'[.:,]? (\.\. math::|====).*', '.'),
    (r',? from (the )?`[^`]*`_+( paper)?( \([^)]*\))?', ''),
    (r' \([^()]*`[^`]*<[^`]*>`_+[^()]*\)', ''),
    (r'(?<=[^\s.]{2}\.)(?<!App\.) (?=[A-Z:`]).*', ''),  # all but the first sentence
    (r'`\"?([^`<\"]*?)\"?\s*<[^>]*>`_+', r'\1'),  # links
    (r':\w+:`~[\w.]*?(\w+)`', r'\1'),
    (r':\w+:`([^`]*)`', r'\1'),
    (r'\\math\w+\{(\w+)\}', r'\1'),
    (r'\\tilde\{(\w+)\}', r'\1~'),
    (r'\^\{\\top\}', '^T'),
    (r'\\ge ', '>= '),
    (r'\\[,;] ?', ''),
    (r'\\(?=[\w{}])|`', ''),
]


def _sentences(things: Mapping[str, Any]) -> dict[str, str]:
    return {name: first_sentence(thing) for name, thing in things.items()}


def _public(module: Any, without: Collection[Any] = ()) -> dict[str, Any]:
    r"""Returns the classes of a module that can be instantiated, except for some."""
    things = {name: getattr(module, name) for name in module.__all__}
    return {
        name: thing
        for name, thing in things.items()
        if inspect.isclass(thing) and not inspect.isabstract(thing) and thing not in without
    }


def catalog() -> Sections:
    r"""Returns, for each section, one line for each name."""
    convs = {name: layer.conv for name, layer in LOCAL_LAYERS.items() if layer is not None}
    return {
        'attentions': {**_sentences(ATTENTIONS), **{name: line for name, (_, line) in ATTN_TYPES.items()}},
        'local layers': {'None': 'No local layer: the layer is its attention alone.', **_sentences(convs)},
        'masks': _sentences(MASKS),
        'masks in Python': _sentences(_public(pyg_topomask.masks, MASKS.values())),
        'transforms': _sentences(_public(pyg_topomask.transforms)),
        'feature maps': _sentences(FEATURE_MAPS),
        'samplers': _sentences(SAMPLERS),
        'kernels': _sentences(KERNELS),
        'data sets': _sentences(DATASETS),
        'models': _sentences(_public(pyg_topomask.nn.models)),
    }


if __name__ == '__main__':
    FILE.write_text(json.dumps(catalog(), indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
