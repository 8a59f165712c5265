"""A step of the build that pyproject.toml cannot state: the wheel holds the lock, for Spaces (`cse.models.space`)."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLock(build_py):
    """Copies requirements.txt into the package, but not into the clone of an editable installation."""

    def run(self) -> None:
        """Build the package."""
        super().run()
        if not self.editable_mode:
            self.copy_file("requirements.txt", str(Path(self.build_lib) / "cse"))


setup(cmdclass={"build_py": BuildWithLock})
