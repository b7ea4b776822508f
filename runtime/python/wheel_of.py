"""wheel_of.py - what `pip install` asks for: a wheel of this folder and of the library.

In:  the package, libvwn.so.     Out: one wheel for every Python 3 on this kind of machine.
The one idea: nothing but the standard library is needed, so nothing is downloaded; the library is one that was built already.
It is looked for as VWN_LIBRARY says; in ../../build; where `pkg-config vwn` says; in the folder that this one was installed to. Only
then it is built from the sources, by cmake.
"""
import base64
import hashlib
import os
import subprocess
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NAME, VERSION = "vwn", "0.1.0"
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Compiles and trains transformers described in .vwn files
Requires-Python: >=3.8
"""


def _library(scratch):
    named = os.environ.get("VWN_LIBRARY")
    if named:
        if not os.path.isfile(named):
            raise SystemExit(f"VWN_LIBRARY names {named}, which is no file")
        return named
    found = [os.path.join(ROOT, "build", "libvwn.so"), os.path.join(ROOT, "..", "lib", "libvwn.so")]
    try:
        where = subprocess.run(["pkg-config", "--variable=prefix", "vwn"], capture_output=True, text=True, check=True).stdout
        found.append(os.path.join(where.strip(), "lib", "libvwn.so"))
    except (OSError, subprocess.CalledProcessError):
        pass
    for path in found:
        if os.path.isfile(path):
            return path
    if not os.path.isfile(os.path.join(ROOT, "CMakeLists.txt")):
        raise SystemExit(f"there is no libvwn.so ({', '.join(found)}): VWN_LIBRARY names one")
    subprocess.run(["cmake", "-S", ROOT, "-B", scratch, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"], check=True)
    subprocess.run(["cmake", "--build", scratch, "--target", "vwn_shared", "-j"], check=True)
    return os.path.join(scratch, "libvwn.so")


def _record(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def _write(folder, files):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    wheel = f"{NAME}-{VERSION}-py3-none-{platform}.whl"
    info = f"{NAME}-{VERSION}.dist-info"
    files[f"{info}/METADATA"] = METADATA.encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n".encode())
    record = "".join(_record(path, data) for path, data in files.items()) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(os.path.join(folder, wheel), "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in files.items():
            out.writestr(path, data)
        out.writestr(f"{info}/RECORD", record)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel with the library inside."""
    package = os.path.join(HERE, NAME)
    files = {}
    for name in sorted(os.listdir(package)):
        if name.endswith(".py") or name == "py.typed":
            with open(os.path.join(package, name), "rb") as f:
                files[f"{NAME}/{name}"] = f.read()
    with tempfile.TemporaryDirectory() as scratch:
        with open(_library(scratch), "rb") as f:
            files[f"{NAME}/libvwn.so"] = f.read()
    return _write(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel that names this folder, where changes are seen at once; the library is found from here, too."""
    return _write(wheel_directory, {f"{NAME}.pth": HERE.encode() + b"\n"})
