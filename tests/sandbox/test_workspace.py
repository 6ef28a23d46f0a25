import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latih.sandbox import Workspace
from latih.sandbox.launcher import collect, lay_out, save
from latih.sandbox.workspace import load, put, total
from tests.soak import examples


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
        assert load(io.BytesIO(damaged)) == (None, False)


@pytest.mark.parametrize("name", ["é" * 128, "\ud800", "a/" * 64 + "a", "/".join(["d" * 200] * 5)])
def test_names_that_no_file_system_takes(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a file here: UTF-8, at most 64 parts of 255 bytes, and 1000 "):
        Workspace().write(name, "")


def test_a_write_that_does_not_fit() -> None:
    workspace = Workspace({"a": bytes(1 << 19), "b": bytes(1 << 19)}, disk=1)  # full to the byte
    with pytest.raises(ValueError, match="c/d: the workspace is full, with 1 MiB or 20000 entries: remove files"):
        workspace.write("c/d", "x")
    assert list(workspace.files()) == ["a", "b"]
    workspace.write("c/empty", "")
    workspace.write("a", bytes(1 << 18))
    workspace.write("c/d", "x")
    with pytest.raises(ValueError, match="is full"):
        Workspace({"a": bytes(2 << 20)}, disk=1)


def test_too_many_entries() -> None:
    workspace = Workspace({f"folder/{number}": "" for number in range(19_999)})
    with pytest.raises(ValueError, match="new: the workspace is full"):
        workspace.write("new", "")
    workspace.write("folder/7", "x")
    workspace.write("folder", "")
    workspace.write("new", "")
    assert workspace.files() == {"folder": b"", "new": b""}


def test_an_overfull_workspace_may_shrink() -> None:
    workspace = Workspace(disk=1)
    workspace.tree = {"a": ("file", 0o644, 1, bytes(3 << 20)), "b": ("file", 0o644, 1, b"")}  # of a run with more
    workspace.write("a", bytes(2 << 20))
    with pytest.raises(ValueError, match="is full"):
        workspace.write("b", "x")


PARTS = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=60)
NAMES = st.lists(PARTS.filter(lambda part: part not in (".", "..")), min_size=1, max_size=4).map("/".join)


@settings(max_examples=examples(50), deadline=None)
@given(files=st.dictionaries(NAMES, st.binary(max_size=9000), max_size=8), times=st.integers(-(2**40), 2**40))
def test_what_is_laid_out_is_collected(
    files: dict[str, bytes], times: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree: dict[str, tuple[str, int, int, bytes]] = {}
    for name, data in files.items():
        put(tree, name, data)
    tree = {name: (kind, mode, times * 10**6, data) for name, (kind, mode, _, data) in tree.items()}
    top = tmp_path_factory.mktemp("top")
    lay_out(tree, str(top))
    found, whole = collect(str(top), total(tree))
    kept = {name: entry for name, entry in found.items() if entry[0] == "file"}
    assert kept == {name: entry for name, entry in tree.items() if entry[0] == "file"}
    assert found.keys() == tree.keys()
    assert whole
    if total(tree):
        assert collect(str(top), total(tree) - 1)[1] is False
