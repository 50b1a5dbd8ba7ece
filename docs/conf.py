"""The documentation site: sphinx-build -c docs . build/site

The root of the repository is the source directory, so that pages link to configurations and tables as they do on GitHub.
"""

import sys
from importlib.resources import files
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import pictures

project = 'pyg_topomask'
author = 'The authors of pyg_topomask'
version = release = installed_version('pyg_topomask')

extensions = [
    'myst_nb',
    'sphinx.ext.autodoc',
    'sphinx.ext.autosummary',
    'sphinx.ext.mathjax',
    'sphinx.ext.napoleon',
    'sphinx.ext.viewcode',
    'sphinx_copybutton',
    'sphinx_design',
]
root_doc = 'docs/index'
include_patterns = ['docs/**', 'benchmarks/results/**', 'graphgps_configs/README.md', 'CONTRIBUTING.md', 'CHANGELOG.md']
exclude_patterns = ['**/_*', '**/.*', 'docs/pictures']
templates_path = [str(FOLDER / '_templates')]

# Markdown and notebooks.
myst_enable_extensions = ['amsmath', 'attrs_inline', 'colon_fence', 'dollarmath']
myst_heading_anchors = 4
nb_execution_mode = 'auto'
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

# The public API, from the docstrings.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_inherit_docstrings = False
autodoc_typehints = 'none'
autodoc_member_order = 'bysource'
napoleon_numpy_docstring = False
napoleon_custom_sections = ['Shapes']
nitpick_ignore_regex = [('py:.*', r'(?!pyg_topomask\.).*')]  # names of other libraries, and words in the types of arguments

html_theme = 'furo'
html_title = f'pyg_topomask {version}'
html_static_path = ['_static', str(files('sphinx-mathjax-offline') / 'static')]  # equations without a network
mathjax_path = 'mathjax/tex-chtml.js'
html_css_files = ['site.css']
html_extra_path = ['_root']  # index.html, which leads to docs/index.html
html_copy_source = False


def add_picture(app: Sphinx, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    """Puts the picture of a mask or layer below the first paragraph of its docstring."""
    if what == 'class' and (picture := pictures.DRAWN.get(name.rpartition('.')[2])) is not None:
        place = lines.index('') if '' in lines else len(lines)
        figure = [
            f'.. figure:: /docs/_pictures/{name.rpartition(".")[2]}.svg',
            '   :align: center',
            '',
            f'   {picture.caption}',
        ]
        lines[place:place] = ['', *figure]


def setup(app: Sphinx) -> None:
    app.connect('builder-inited', lambda app: pictures.draw(Path(app.confdir) / '_pictures'))
    app.connect('autodoc-process-docstring', add_picture)
