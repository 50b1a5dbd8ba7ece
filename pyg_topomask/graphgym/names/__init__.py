r"""The words of the YAML, each kind in one table:

==================================== ============================================ =======================================
option                               words                                        table
==================================== ============================================ =======================================
``gt.layer_type``, after the ``+``   ``GRF``, ``Linear``, ``Transformer``, ...    ``ATTENTIONS``, ``ATTN_TYPES`` (attentions)
``gt.layer_type``, before the ``+``  ``GINE``, ``GCN``, ...                       ``LOCAL_LAYERS`` (layers)
``gnn.layer_type``                   ``grf_attention``, ...                       registered in layers
``gnn.layer_type`` of ``CustomGNN``  ``gatedgcnconv``, ``gineconv``               ``LAYERS`` (networks)
``topomask.mask``                    ``GRF``, ``SinDegree``, ``sum``, ...         ``MASKS``, ``COMPOSITIONS`` (masks)
``topomask.<attention>.<option>``    the keyword arguments of the attention       ``attention_options`` (attentions)
``model.type``                       ``TopoGPSModel``, ``CustomGNN``              registered in networks
``model.type``                       ``GKAT``, ``ViViT``, ...                     ``MODELS`` (networks)
``gnn.act``                          ``gelu``, ``swish``, ...                     ``ACTIVATIONS`` (networks)
``gnn.head``                         ``san_graph``, ``inductive_node``            ``HEADS`` (networks)
``dataset.node_encoder_name``        ``LinearNode``, ``LapPE``, ``X+RWSE``, ...   ``NODE_ENCODERS``, ``APPENDING`` (encoders)
``dataset.edge_encoder_name``        ``LinearEdgeAttr``, ``DummyEdge``, ...       ``EDGE_ENCODERS`` (encoders)
``model.loss_fun``                   ``weighted_cross_entropy``, ``l1``           registered in objectives
``custom_metrics``                   ``macro_f1``, ``mean_iou``, ...              registered in objectives
==================================== ============================================ =======================================

Words of GraphGPS that are missing here are in ``ELSEWHERE`` (lookup), with what may take their place. The words of data
sets are in :mod:`pyg_topomask.apps.datasets`, and ``PYG_DATASETS`` in ``data``.
"""
