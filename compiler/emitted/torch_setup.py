# setup.py - written by `vwn emit torch`: compiles the library of kernels where there is none, and makes one wheel of it for
# all versions of Python and of PyTorch.
import os
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = next(name for name in sorted(os.listdir(HERE)) if os.path.exists(os.path.join(HERE, name, "_table.py")))


class Build(build_py):
    def run(self):
        super().run()
        library = os.path.join(os.path.abspath(self.build_lib), PACKAGE, "_kernels.so")
        if not os.path.exists(library):
            subprocess.check_call(["sh", os.path.join(HERE, PACKAGE, "csrc", "build.sh"), library])


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(
    packages=[PACKAGE],
    package_data={PACKAGE: ["_kernels.so", "csrc/*"]},
    cmdclass={"build_py": Build, "bdist_wheel": Wheel},
)
