r"""Names and groups of options of GraphGPS and its forks that this package lacks, and what may take their place."""

from __future__ import annotations

_TOPO = 'model.type TopoGPSModel'
_LAP = 'the encoder LapPE with posenc_LapPE'

#: What may take the place of a name or a group, or an empty text.
ELSEWHERE = {
    # Networks.
    'gatedgcnconv': 'model.type custom_gnn',
    'gineconv': 'model.type custom_gnn',
    'gcniiconv': f'{_TOPO} gt.layer_type GCN+None',
    'MultiModel': f'{_TOPO}, with the word Expander for Exphormer',
    'SingleModel': f'{_TOPO}, with the word Expander for Exphormer',
    'SANTransformer': f'{_TOPO} gt.layer_type None+Transformer',
    'Graphormer': f'{_TOPO} gt.layer_type None+Transformer',
    'GPSwLPEModel': f'{_TOPO} with {_LAP}',
    # Attentions, the last two of which are networks as well.
    'Exphormer': 'the word Expander',
    'BiasedTransformer': 'the word Hop',
    'BigBird': f'{_TOPO} and the word Expander',
    'Performer': f'{_TOPO} gt.layer_type None+Performer',
    # Groups of options and their encoders.
    'posenc_SignNet': _LAP,
    'posenc_HKdiagSE': 'the encoder RWSE with posenc_RWSE',
    'posenc_ElstaticSE': 'the encoder RWSE with posenc_RWSE',
    'posenc_GraphormerBias': 'the word Hop',
    'posenc_ERN': _LAP,
    'pretrained.dir': 'training from the start, without the group pretrained',
    'prep.add_self_loops': 'topomask.transforms "[AddSelfLoops]"',
    # Data sets, encoders, heads and tasks.
    'PyG-ModelNet10OnDisk': 'the file kmip/modelnet10 of this package',
    'PyG-S3DISOnDisk': 'the file kmip/s3dis of this package',
    'determine_in_script': 'the value that a script of that repository fills in',
    **dict.fromkeys(('PCQM4Mv2', 'PCQM4Mv2Contact'), ''),
    'ZINCNode': 'TypeDictNode',
    'ZINCEdge': 'TypeDictEdge',
    **dict.fromkeys(('ASTNode', 'ASTEdge', 'PPANode', 'PPAEdge'), ''),
    **dict.fromkeys(('graphormer_graph', 'inductive_edge', 'infer_links', 'ogb_code_graph', 'subtoken_prediction'), ''),
}


def remedy_of(name: object) -> str:
    r"""Returns how to get a name that this package lacks, or an empty text for names that it does not know.

    Example:
        >>> remedy_of('Exphormer')
        'instead: the word Expander; unchanged: in a checkout of its repository run pyg-topomask graphgps --cfg <file>'
        >>> remedy_of('no such name')
        ''
    """
    words = str(name).split('+')
    known = [each for each in (*words, *(f'posenc_{word}' for word in words)) if each in ELSEWHERE]
    if not known:
        return ''
    instead = f'instead: {ELSEWHERE[known[0]]}; unchanged: ' if ELSEWHERE[known[0]] else ''
    return f'{instead}in a checkout of its repository run pyg-topomask graphgps --cfg <file>'
