"""Errors can be planted only where their text is."""

from planted_errors import ERRORS, ROOT


def test_every_text_to_replace_occurs_once() -> None:
    for error in ERRORS:
        assert (ROOT / 'pyg_topomask' / error.file).read_text().count(error.text) == 1, (error.file, error.text)
