import io
import os
from pathlib import Path

import pytest

from latih.sandbox import SandboxError, Workspace
from latih.sandbox.launcher import collect, save
from latih.sandbox.workspace import load


def test_files_are_read_and_written() -> None:
    workspace = Workspace({"b/c.txt": "text", "a": b"\x00"})
    assert workspace.files() == {"a": b"\x00", "b/c.txt": b"text"}
    assert list(workspace.files()) == ["a", "b/c.txt"]
    workspace.write("b/c.txt", b"new")
    assert workspace.read("b/c.txt") == b"new"
    with pytest.raises(ValueError, match="3 bytes, more than 2"):
        workspace.read("b/c.txt", most=2)
    for name in ("b", "none", "a/b"):
        with pytest.raises(FileNotFoundError):
            workspace.read(name)
    workspace.close()
    assert workspace.files() == {}


def test_a_write_replaces_what_is_in_its_way() -> None:
    workspace = Workspace({"a": "a", "b/c": "c", "b/d/e": "e", "bc": "bc"})
    workspace.write("a/x", "x")
    workspace.write("b", "b")
    assert workspace.files() == {"a/x": b"x", "b": b"b", "bc": b"bc"}


@pytest.mark.parametrize("name", ["/a", "..", "a/../b", "a/", "./a", "", "a\0b"])
def test_names_are_relative(name: str) -> None:
    workspace = Workspace()
    for call in (lambda: workspace.write(name, ""), lambda: workspace.read(name), lambda: Workspace({name: ""})):
        with pytest.raises(ValueError, match="no relative name"):
            call()


def test_links_are_collected_as_links_and_nothing_but_files_and_folders_beside(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "folder").mkdir(parents=True)
    (base / "folder" / "a").write_text("a")
    (tmp_path / "secret").write_text("secret")
    (base / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(base / "fifo")
    tree, whole = collect(str(base), 1 << 20)
    assert {name: (kind, data) for name, (kind, _, _, data) in tree.items()} == {
        "folder": ("folder", b""),
        "folder/a": ("file", b"a"),
        "link": ("link", str(tmp_path / "secret").encode()),
    }
    assert whole


def test_what_is_collected_is_bounded(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 5000)
    tree, whole = collect(str(tmp_path), 16384)  # two pages of 4096 bytes each
    assert len(tree) == 2
    assert not whole
    tree, whole = collect(str(tmp_path), 24576)
    assert sorted(tree) == ["a", "b", "c"]
    assert whole


def test_saved_trees_come_back(tmp_path: Path) -> None:
    tree = {"a": ("folder", 0o755, 1, b""), "a/b": ("file", 0o640, 2, b"\n{}\n"), "l": ("link", 0o777, 3, b"/x")}
    file = io.BytesIO()
    save(tree, True, file)
    assert load(io.BytesIO(file.getvalue())) == (tree, True)
    for damaged in (b"", b"{}\n", file.getvalue()[:-1], file.getvalue().replace(b"a/b", b"../")):
        with pytest.raises(SandboxError, match="did not come back"):
            load(io.BytesIO(damaged))
