"""Packs the configurations, which are at the top of the repository, into the wheel. Everything else is in pyproject.toml."""

from pathlib import Path
from shutil import copytree

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDER = 'graphgps_configs'


class BuildWithConfigs(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # an editable install reads them where they are
            copytree(FOLDER, Path(self.build_lib, 'pyg_topomask', FOLDER), dirs_exist_ok=True)


setup(cmdclass={'build_py': BuildWithConfigs})
