"""The labels of the task that needs the types of edges, by a search in plain Python."""

import numpy as np

from benchmarks.edge_types import CLASSES, Task, majorities


def test_labels_are_majorities_over_edges_of_the_type_that_is_asked_for() -> None:
    for data in majorities(Task(hops=2, nodes=12, degree=3.0, seeds=1), 5, np.random.default_rng(0)):
        classes, asked = data.x[:, :CLASSES].argmax(1).tolist(), int(data.x[0, CLASSES:].argmax())
        edges = data.edge_index[:, data.edge_attr.argmax(1) == asked].t().tolist()
        assert data.num_edges == 36
        for node, label in enumerate(data.y.tolist()):
            reached = {node}
            for _ in range(2):
                reached |= {target for source, target in edges if source in reached}
            votes = np.bincount([classes[each] for each in reached], minlength=CLASSES)
            assert label == (-1 if votes[0] == votes[1] else votes.argmax())
