"""What garbage collection looks through, before and after imports and trainings."""

from forked import Forked

CASE = """
import gc
from unittest import mock
from pyg_topomask.utils import garbage as module
from pyg_topomask.utils.garbage import frozen, importing

gc.unfreeze()
module._apart = False
with importing():
    assert not gc.isenabled()
    libraries = [[] for _ in range(1000)]
assert gc.isenabled()
held = gc.get_freeze_count()
assert held > 1000
with importing(), frozen():  # of a process that has imported before
    garbage = [[] for _ in range(1000)]
assert gc.get_freeze_count() <= held
gc.unfreeze()
module._apart = False
with frozen():
    assert gc.get_freeze_count() > 2000
    with mock.patch.object(gc, 'get_freeze_count', None), frozen():  # it takes a fifth of a second
        pass
assert gc.get_freeze_count() == 0
gc.disable()
with importing():
    pass
assert not gc.isenabled()
"""


def test_what_was_imported_is_passed_over_and_the_rest_is_not() -> None:
    status, _, error = Forked('-c', CASE).wait()
    assert status == 0, error
