"""Files from the Python package index, fetched by pip once and kept in the user's cache: sdists, and the test kit.

pip asks an sdist for its metadata, which runs the package's build code as installing it would. Where the SHA-256 is
known, pip checks it before anything is run.
"""

import functools
import hashlib
import io
import re
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from latih.core.cache import CACHE_HINT, cache_folder
from latih.core.errors import LatihError
from latih.core.files import whole_file, whole_folder, writing
from latih.core.pip import run_pip
from latih.core.schema import Record

TIMEOUT = 600.0
"""Seconds that pip may take for one package."""
MAX_FILE = 1 << 20
"""Bytes. Larger files of an sdist are left out."""
MAX_TOTAL = 64 << 20
"""Bytes that the files of an sdist may have together."""
UNPACKED = 4
"""Sdists whose files are kept in memory: of a small package, a megabyte."""

KIT = {
    "iniconfig==2.3.0": "f631c04d2c48c52b84d0d0549c99ff3859c98df65b3101406327ecc7d53fbf12",
    "packaging==25.0": "29572ef2b1f17581046b3a2227d5c611fb25ec70ca1ba8554b24b0e69331a484",
    "pluggy==1.6.0": "e920276dd6813095e9377c0bc5566d94c932c33b27a3e3945d8389c374dd4746",
    "pygments==2.19.2": "86540386c03d588bb81d44bc3928634ff26449851e99741617ecb9037ee5ec0b",
    "pytest==8.4.2": "872f880de3fc3a5bdc88a11b39c9710c3497a547cfa9320bc3c5e62fbf272e79",
}
"""The wheels of the test kit, each with its SHA-256."""


class Sdist(Record):
    """A source distribution of the index, named exactly."""

    package: str
    version: str
    sha256: str


def find_sdist(package: str, version: str | None = None) -> Sdist:
    """The sdist of a package that pip finds, of its newest version unless one is named. Fetches it into the cache.

    A version that the cache holds is not looked for again.

    Raises LatihError where there is none, or the index cannot be reached.
    """
    _check_name(package)
    for kept in sorted((cache_folder() / "sdists").glob(f"{package}-{version}-*.tar.gz") if version else ()):
        return Sdist(package=package, version=str(version), sha256=hashlib.sha256(kept.read_bytes()).hexdigest())
    with tempfile.TemporaryDirectory(prefix="latih-") as temporary:
        file = _download(f"{package}=={version}" if version else package, Path(temporary))
        found = Sdist(
            package=package,
            version=file.name.removesuffix(".tar.gz").rpartition("-")[2],
            sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        _keep(file, _place(found))
    return found


def read_sdist(sdist: Sdist) -> Mapping[str, bytes]:
    """The regular files of an sdist, by their paths below its one top folder. From the cache, or else from the index.

    Nothing is written to disk, and links are left out. The latest few stay unpacked in memory, since an episode asks
    for the same one time and again. Raises LatihError: unreachable, or not the file that `sha256` names.
    """
    place = _place(sdist)
    if not place.is_file():
        _check_name(sdist.package)
        with tempfile.TemporaryDirectory(prefix="latih-") as temporary:
            line = f"{sdist.package}=={sdist.version} --hash=sha256:{sdist.sha256}\n"
            _keep(_download(line, Path(temporary)), place)
    return _unpacked(place, sdist.sha256, f"{sdist.package} {sdist.version}")


def test_kit() -> Path:
    """A folder with pytest and what it needs, pinned, for `sys.path` inside a sandbox. Made once. Raises LatihError."""
    wanted = "".join(f"{pin} --hash=sha256:{digest}\n" for pin, digest in KIT.items())
    home = cache_folder() / "kits"
    folder = home / hashlib.sha256(wanted.encode()).hexdigest()[:12]
    if folder.is_dir():
        return folder
    with writing("the test kit", home, CACHE_HINT), whole_folder(folder) as whole:
        options = ["install", "--only-binary=:all:", f"--target={whole}"]
        _pip("the test kit (pytest)", options, wanted, whole.parent)
        for each in (whole, *whole.rglob("*")):  # the sandbox reads it as another user
            each.chmod(0o755 if each.is_dir() else 0o644)
    return folder


test_kit.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for a test where a test imports it


def _check_name(package: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", package):
        raise LatihError(f"{package!r} is no package's name")


def _place(sdist: Sdist) -> Path:
    return cache_folder() / "sdists" / f"{sdist.package}-{sdist.version}-{sdist.sha256[:12]}.tar.gz"


def _keep(file: Path, place: Path) -> None:
    with writing(place.name, place.parent, CACHE_HINT), whole_file(place) as temporary:
        shutil.copyfile(file, temporary)


def _download(wanted: str, folder: Path) -> Path:
    options = ["download", "--no-binary=:all:", f"--dest={folder / 'got'}"]
    name = wanted.split(" ")[0]
    _pip(f"the source distribution of {name}", options, wanted, folder)
    found = sorted((folder / "got").iterdir())
    if len(found) != 1 or not found[0].name.endswith(".tar.gz"):
        raise LatihError(f"the index has no .tar.gz source distribution of {name}: take another package or version")
    return found[0]


def _pip(what: str, options: Sequence[str], wanted: str, folder: Path) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(wanted, encoding="utf-8")
    fault = run_pip([*options, f"--requirement={requirements}"], TIMEOUT)
    if fault:
        raise LatihError(f"cannot fetch {what}: {fault}; mend the network or the name")


@functools.lru_cache(maxsize=UNPACKED)
def _unpacked(place: Path, sha256: str, what: str) -> Mapping[str, bytes]:
    content = place.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise LatihError(f"{place} is damaged (not the file that its SHA-256 names): delete it and run again")
    return MappingProxyType(_members(content, what))  # all who ask share it


def _members(content: bytes, what: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                if not member.isreg() or member.size > MAX_FILE or len(path.parts) < 2:
                    continue
                if path.is_absolute() or ".." in path.parts:
                    raise LatihError(f"{what}: {member.name} leaves its folder: not used")
                total += member.size
                if total > MAX_TOTAL:
                    raise LatihError(f"{what}: more than {MAX_TOTAL >> 20} MiB of files: not used")
                stream = archive.extractfile(member)
                assert stream is not None  # a regular file
                files[str(PurePosixPath(*path.parts[1:]))] = stream.read()
    except (tarfile.TarError, OSError, EOFError) as exc:
        raise LatihError(f"{what}: its archive cannot be read: {exc}") from exc
    return files
