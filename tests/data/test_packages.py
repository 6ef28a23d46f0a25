import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from latih.core import LatihError
from latih.data import packages
from latih.data.packages import Sdist, find_sdist, read_sdist


def sdist(home: Path, files: dict[str, bytes], links: dict[str, str] | None = None, version: str = "1.0") -> Sdist:
    """Put an sdist of `shop` into the cache under `home`."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"shop-{version}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(f"shop-{version}/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    made = Sdist(package="shop", version=version, sha256=hashlib.sha256(stream.getvalue()).hexdigest())
    place = home / "sdists" / f"shop-{version}-{made.sha256[:12]}.tar.gz"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(stream.getvalue())
    return made


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATIH_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")


def test_what_is_cached_needs_no_index(tmp_path: Path) -> None:
    made = sdist(tmp_path, {"shop.py": b"x = 1\n", "PKG-INFO": b""}, links={"link.py": "shop.py"})
    assert read_sdist(made) == {"shop.py": b"x = 1\n", "PKG-INFO": b""}
    assert find_sdist("shop", "1.0") == made


def test_what_is_asked_for_again_is_not_unpacked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [sdist(tmp_path, {"shop.py": b"x = %d\n" % version}, version=f"{version}.0") for version in range(6)]
    unpacked: list[str] = []
    members = packages._members
    monkeypatch.setattr(packages, "_members", lambda content, what: unpacked.append(what) or members(content, what))
    for number in (0, 0, 1, 0, 1, 2, 3, 4, 5, 0):
        assert read_sdist(made[number]) == {"shop.py": b"x = %d\n" % number}
    assert unpacked == [f"shop {version}.0" for version in (0, 1, 2, 3, 4, 5, 0)], "four are kept, and no more"
    with pytest.raises(TypeError):
        read_sdist(made[0])["shop.py"] = b""  # type: ignore[index]


def test_a_changed_file_is_not_used(tmp_path: Path) -> None:
    made = sdist(tmp_path, {"shop.py": b"x = 1\n"})
    [file] = (tmp_path / "sdists").iterdir()
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(LatihError, match="is damaged"):
        read_sdist(made)


def test_large_files_are_left_out_and_bad_paths_refused(tmp_path: Path) -> None:
    made = sdist(tmp_path, {"big.bin": b"\0" * (packages.MAX_FILE + 1), "a.py": b""})
    assert read_sdist(made) == {"a.py": b""}
    (tmp_path / "other").mkdir()
    made = sdist(tmp_path / "other", {"../../evil.py": b""})
    (next((tmp_path / "other" / "sdists").iterdir())).rename(next((tmp_path / "sdists").iterdir()).parent / "x")
    content = (tmp_path / "sdists" / "x").read_bytes()
    with pytest.raises(LatihError, match="leaves its folder"):
        packages._members(content, "shop")


def test_what_cannot_be_had_gets_one_line() -> None:
    for ask in (
        lambda: find_sdist("no-such-package-of-latih"),
        lambda: read_sdist(Sdist(package="no-such-package-of-latih", version="1", sha256="0" * 64)),
    ):
        with pytest.raises(
            LatihError, match="cannot fetch the source distribution of no-such-package-of-latih"
        ) as caught:
            ask()
        assert "\n" not in str(caught.value)
    with pytest.raises(LatihError, match="is no package's name"):
        find_sdist("--extra-index-url=x")
