"""The documentation site: sphinx-build -c docs . build/site

The root of the repository is the source directory, so that pages link to configurations and tables as they do on GitHub.
"""

import os
import re
import sys
from importlib import import_module
from importlib.metadata import version as installed_version
from importlib.resources import files
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext import autosummary

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

import pictures  # noqa: E402

project = 'pyg_topomask'
author = copyright = 'the authors of pyg_topomask'
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
nb_execution_timeout = 600
nb_merge_streams = True
# For the notebooks: their tensors are small, and they show no bars of progress.
os.environ |= {'OMP_NUM_THREADS': '1', 'PYTHONWARNINGS': 'ignore:IProgress not found'}

# The public API, from the docstrings.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autosummary.WELL_KNOWN_ABBREVIATIONS += ('App.', 'Eq.', 'Sec.')  # no ends of sentences
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


#: All public names, from the modules that docs/api.md lists.
MODULES = [
    import_module(name) for name in re.findall(r'^   (pyg_topomask[\w.]+)$', (FOLDER / 'api.md').read_text(), re.MULTILINE)
]
NAMES = {name: module for module in MODULES for name in module.__all__}
PUBLIC = [getattr(module, name) for name, module in NAMES.items()]


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


def show_public_bases(app: Sphinx, name: str, value: type, options: Any, bases: list[Any]) -> None:
    """Replaces base classes that are not public by theirs."""
    while hidden := [base for base in bases if base.__module__.startswith('pyg_topomask') and base not in PUBLIC]:
        place = bases.index(hidden[0])
        bases[place : place + 1] = [base for base in hidden[0].__bases__ if base not in bases]


def link_public_names(app: Sphinx, document: nodes.document) -> None:
    """Links public classes in code on the pages to their documentation. `LowRank` there is a word of a YAML."""
    for literal in list(document.findall(nodes.literal)):
        name = literal.astext()
        if name in NAMES and name[0].isupper() and name != 'LowRank':
            target = {'reftype': 'class', 'reftarget': f'{NAMES[name].__name__}.{name}', 'refexplicit': True}
            if not isinstance(literal.parent, nodes.reference | pending_xref):
                literal.replace_self(pending_xref('', literal.deepcopy(), refdomain='py', refdoc=app.env.docname, **target))


def spread_notebooks(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    r"""Notebooks run while they are read. Processes read consecutive documents, so that neighbors would run one by one."""
    notebooks = [name for name in docnames if name.startswith('docs/notebooks/')]
    others = [name for name in docnames if name not in notebooks]
    apart = len(others) // max(len(notebooks), 1)
    docnames[:] = others[apart * len(notebooks) :]
    for place, notebook in enumerate(notebooks):
        docnames += [notebook, *others[apart * place : apart * (place + 1)]]


def list_tables(app: Sphinx, name: str, content: list[str]) -> None:
    """Lists the tables on their page, and keeps them out of the sidebar, which each page repeats."""
    if name.startswith('benchmarks/results/') and not name.endswith('REPORT'):
        content[0] = f'---\norphan: true\n---\n{content[0]}'
    if name == 'docs/tables':
        tables = sorted((FOLDER.parent / 'benchmarks' / 'results').glob('[a-z]*.md'))
        content[0] += '\n' + '\n'.join(f'- [](../benchmarks/results/{table.name})' for table in tables)


def setup(app: Sphinx) -> None:
    app.connect('source-read', list_tables)
    app.connect('env-before-read-docs', spread_notebooks)
    app.connect('doctree-read', link_public_names)
    app.connect('autodoc-process-bases', show_public_bases)
    app.connect('builder-inited', lambda app: pictures.draw(Path(app.confdir) / '_pictures'))
    app.connect('autodoc-process-docstring', add_picture)
