"""What programs try. Each test runs the attack and asserts that it came to nothing, and that the host is unharmed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import latih
from latih.sandbox import Limits, Workspace, run
from tests.sandbox.needs import needs_bubblewrap

pytestmark = needs_bubblewrap

PATIENT = Limits(wall=60)
"""For what ends by itself: the machine may be busy."""


def said(source: str, **more: object) -> object:
    """What the program puts on its channel, as JSON."""
    more.setdefault("limits", PATIENT)
    head = "import json, os\ndef tell(value): os.write(int(os.environ['LATIH_CHANNEL']), json.dumps(value).encode())\n"
    result = run(head + source, **more)  # type: ignore[arg-type]
    assert result.code == 0, result
    return json.loads(result.channel)


def processes(mark: str) -> list[int]:
    """The processes of this machine with `mark` in their command line."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in each.read_bytes():
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


# reading


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/shadow", "/etc/hostname", "/home", "/sys", "/var", "/proc/1/environ"]
)
def test_files_of_the_host_are_not_there(path: str) -> None:
    source = f"""
import os
try:
    os.listdir({path!r}) if os.path.isdir({path!r}) else open({path!r}).read()
except OSError as exc:
    print(type(exc).__name__)
"""
    assert run(source).stdout.decode().strip() in ("FileNotFoundError", "PermissionError")


def test_only_the_interpreter_is_there(tmp_path: Path) -> None:
    secret = f"secret-{os.getpid()}"
    (tmp_path / secret).write_text(secret)
    source = f"""
found = []
for folder, folders, names in os.walk("/"):
    if folder == "/":
        folders.remove("proc")
    if {secret!r} in names:
        found.append(folder)
    if folder.endswith("/site-packages"):
        found += [each for each in folders if each == "latih" and os.listdir(folder + "/latih")]
        folders.clear()
tell([sorted(os.listdir("/")), found, os.path.exists({str(Path(__file__))!r}), os.path.exists({latih.__file__!r})])
"""
    top, found, tests, ours = said(source, limits=Limits(wall=120, cpu=100))  # type: ignore[misc]
    interpreter = {Path(each).parts[1] for each in (sys.prefix, sys.base_prefix)}
    assert set(top) <= {"bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "tmp", "usr", "work"} | interpreter
    assert (found, tests, ours) == ([], False, False)


def test_home_holds_nothing_but_the_interpreter() -> None:
    home = str(Path.home())
    listed = said(f"tell(os.listdir({home!r}) if os.path.isdir({home!r}) else [])")
    inside = {Path(each).relative_to(home).parts[0] for each in (sys.prefix, sys.base_prefix) if each.startswith(home)}
    assert set(listed) <= inside  # type: ignore[call-overload]


def test_environment_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    source = """
seen = dict(os.environ)
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        seen[pid] = open(f"/proc/{pid}/environ").read()
    except OSError:
        pass
tell(seen)
"""
    told = json.dumps(said(source))
    assert "hunter2" not in told
    names = {name for name in said(source) if not name.isdecimal()}  # type: ignore[attr-defined]
    assert names <= {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "PYTHONDONTWRITEBYTECODE", "LATIH_CHANNEL"}


def test_no_descriptor_of_ours_is_open() -> None:
    source = """
targets = []
for fd in os.listdir("/proc/self/fd"):
    try:
        targets.append(os.readlink(f"/proc/self/fd/{fd}"))
    except OSError:  # that of the listing itself
        pass
tell(targets)
"""
    kinds = sorted(each.split(":")[0] for each in said(source))  # type: ignore[attr-defined]
    assert kinds == ["/memfd", "pipe", "pipe", "pipe"]  # stdin, stdout, stderr, channel


def test_stdin_cannot_be_written() -> None:
    result = run(
        "import os; print(open('/proc/self/fd/0').read()); os.write(os.open('/proc/self/fd/0', 2), b'x')", stdin=b"in"
    )
    assert result.stdout == b"in\n"
    assert b"PermissionError" in result.stderr


def test_few_devices() -> None:
    listed = said("tell(os.listdir('/dev'))")
    devices = {"null", "zero", "full", "random", "urandom"}
    assert set(listed) == devices | {"fd", "shm", "stdin", "stdout", "stderr"}  # type: ignore[call-overload]


# reaching out


def test_no_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        source = f"""
import socket
told = []
for host in ("127.0.0.1", "10.0.0.1", "1.1.1.1", "::1"):
    try:
        socket.create_connection((host, {port}), 1).close()
        told.append(host)
    except OSError:
        pass
tell([told, [name for _, name in socket.if_nameindex()]])
"""
        assert said(source) == [[], ["lo"]]
        with pytest.raises(TimeoutError):
            server.accept()


def test_abstract_sockets_of_the_host_are_out_of_reach() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0latih-test-{os.getpid()}")
        server.listen()
        source = f"""
import socket
try:
    socket.socket(socket.AF_UNIX).connect("\\0latih-test-{os.getpid()}")
    tell("connected")
except ConnectionRefusedError:
    tell("refused")
"""
        assert said(source) == "refused"


def test_writing_outside() -> None:
    prefix = sys.base_prefix
    source = f"""
done = []
kernel = "/proc/sys/kernel/hostname"
for path in ("/x", "/usr/x", "/usr/bin/x", "/dev/x", kernel, "/etc/x", {prefix!r} + "/x", {os.__file__!r}):
    try:
        open(path, "a").write("x")
        done.append(path)
    except OSError:
        pass
tell(done)
"""
    assert said(source) == []


def test_no_other_user_and_no_rights() -> None:
    source = """
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
told = [os.getresuid(), os.getgroups(), status["CapEff"], status["CapBnd"], status["NoNewPrivs"], status["Seccomp"]]
try:
    os.setuid(0)
    told.append("root")
except OSError:
    pass
tell(told)
"""
    uids, groups, effective, bounding, no_new, seccomp = said(source)  # type: ignore[misc]
    assert uids == [1000] * 3
    assert set(groups) <= {1000, 65534}
    assert (int(effective, 16), int(bounding, 16), no_new, seccomp) == (0, 0, "1", "2")


def test_another_uid_on_the_host() -> None:
    mark = f"mark-{os.getpid()}-uid"
    program = [sys.executable, "-c", "import sys; sys.stdin.read(); import time; time.sleep(3)", mark]
    thread = threading.Thread(target=run, args=(program,))
    thread.start()
    uids: set[int] = set()

    def seen() -> bool:
        for pid in processes(mark):
            with contextlib.suppress(OSError):
                uids.add(Path(f"/proc/{pid}").stat().st_uid)
        return bool(uids)

    wait_until(seen)
    thread.join()
    assert uids
    assert 0 not in uids


@pytest.mark.parametrize(
    "call", ["unshare(0x10000000)", "unshare(0x00020000)", "ptrace(16, 1, 0, 0)", "memfd_create(b'x', 0)"]
)
def test_refused_system_calls(call: str) -> None:
    assert said(
        f"import ctypes; libc = ctypes.CDLL(None, use_errno=True); tell([libc.{call}, ctypes.get_errno()])"
    ) == [-1, 38]


def test_launcher_is_out_of_reach() -> None:
    source = """
done = []
for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps"):
    try:
        open(path, "rb").read(1)
        done.append(path)
    except OSError:
        pass
try:
    done += os.listdir("/proc/1/fd")
except OSError:
    pass
tell(done)
"""
    assert said(source) == []


def test_killing_everybody() -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    source = f"""
import os, signal
for pid in (1, os.getppid(), {os.getpid()}, {bystander.pid}, -1):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
print("alive", flush=True)
"""
    result = run(source)
    assert (result.code, result.stdout) == (0, b"alive\n")
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_stopping_the_launcher() -> None:
    result = run(
        "import os, signal, time; os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGTERM); time.sleep(60)",
        limits=PATIENT,
    )
    assert (result.code, result.timed_out) == (-signal.SIGKILL, False)


# using up


def test_endless_loop() -> None:
    started = time.monotonic()
    result = run("while True: pass", limits=Limits(wall=0.5))
    assert (result.code, result.timed_out) == (None, True)
    assert time.monotonic() - started < 30


def test_cpu_time() -> None:
    result = run("while True: pass", limits=Limits(cpu=1, wall=60))
    assert (result.code, result.timed_out) == (-signal.SIGKILL, False)


def test_ignored_signals_do_not_help() -> None:
    source = """
import signal
for number in set(range(1, 32)) - {9, 19}:
    signal.signal(number, signal.SIG_IGN)
while True:
    signal.pause()
"""
    assert run(source, limits=Limits(wall=0.5)).timed_out


def test_fork_bomb() -> None:
    source = """
import os
made = 0
while True:
    try:
        if os.fork() == 0:
            import time
            time.sleep(60)
    except OSError as exc:
        os.write(int(os.environ["LATIH_CHANNEL"]), f"{made} {exc.errno}".encode())
        os._exit(0)
    made += 1
"""
    result = run(source, limits=Limits(processes=8, wall=60))
    assert result.channel == b"7 11"  # itself is the eighth; EAGAIN
    assert not result.timed_out


def test_fork_bomb_that_spreads_does_not_touch_its_neighbours() -> None:
    bomb = threading.Thread(
        target=run,
        args=("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",),
        kwargs={"limits": Limits(wall=5)},
    )
    bomb.start()
    result = run(
        "import threading\nt = threading.Thread(target=print, args=('hi',)); t.start(); t.join()", limits=PATIENT
    )
    bomb.join()
    assert result.stdout == b"hi\n"


def test_memory_of_a_process() -> None:
    result = run("try: x = bytearray(300 << 20)\nexcept MemoryError: print('no')", limits=Limits(memory=200))
    assert result.stdout == b"no\n"
    assert run("x = bytearray(100 << 20); print(len(x))", limits=Limits(memory=200)).stdout == b"104857600\n"


def test_memory_of_all_processes() -> None:
    source = """
import mmap, os, time
for _ in range(6):
    if os.fork() == 0:
        memory = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for page in range(0, len(memory), 4096):
            memory[page] = 1
        time.sleep(60)
time.sleep(60)
"""
    result = run(source, limits=Limits(memory=150, wall=60))
    assert (result.code, result.timed_out) == (-signal.SIGKILL, False)


def test_memory_that_nobody_is_resident_in_is_not_to_be_had() -> None:
    # Its pages would stay when they are given up, or when the child that touched them ends: nothing would count them.
    source = """
import mmap
told = []
for name in (None, "/dev/zero", "/dev/full", "/tmp/file"):
    file = open(name, "w+b" if name == "/tmp/file" else "r+b", buffering=0) if name else None
    try:
        file and name == "/tmp/file" and file.truncate(1 << 20)
        mmap.mmap(file.fileno() if file else -1, 1 << 20)
        told.append(0)
    except OSError as exc:
        told.append(exc.errno)
tell([told, open("/dev/zero", "rb").read(3).hex()])
"""
    assert said(source) == [[38, 19, 19, 0], "000000"]  # ENOSYS, ENODEV


def test_memory_is_shared_by_way_of_files() -> None:
    source = """
import multiprocessing
from multiprocessing.shared_memory import SharedMemory
value = multiprocessing.Value("i", 3)
block = SharedMemory(create=True, size=8)
def double():
    value.value *= 2
    block.buf[0] = 7
child = multiprocessing.Process(target=double)
child.start()
child.join()
tell([value.value, block.buf[0]])
os._exit(0)
"""
    assert said(source) == [6, 7]


def test_children_that_share_memory_are_not_counted_twice() -> None:
    source = """
import os, time
memory = bytearray(b"x") * (100 << 20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
for _ in range(4):
    os.wait()
print("done")
"""
    assert run(source, limits=Limits(memory=200, wall=60)).stdout == b"done\n"


@pytest.mark.parametrize("folder", ["/work", "/tmp", "/dev/shm"])
def test_full_disk(folder: str) -> None:
    source = f"""
written = 0
try:
    for number in range(100):
        with open(f"{folder}/{{number}}", "wb", buffering=0) as file:
            written += file.write(bytes(1 << 20))
except OSError as exc:
    tell([written >> 20, exc.errno])
"""
    written, number = said(source, limits=Limits(disk=8, wall=60))  # type: ignore[misc]
    assert 7 <= written <= 8
    assert number == 28  # ENOSPC


def test_endless_output() -> None:
    source = "import os\nwhile True:\n  for fd in (1, 2, int(os.environ['LATIH_CHANNEL'])): os.write(fd, b'x' * 65536)"
    result = run(source, limits=Limits(wall=2, output=1000))
    assert (result.stdout, result.stderr, result.channel) == (b"x" * 1000,) * 3
    assert (result.timed_out, result.cut) == (True, True)


def test_daemon_dies_with_the_program() -> None:
    mark = f"mark-{os.getpid()}-daemon"
    source = f"""
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", {mark!r}], start_new_session=True)
        os.write(int(os.environ["LATIH_CHANNEL"]), b"up")
        os._exit(0)
    os._exit(0)
import time
time.sleep(1)
"""
    result = run(source, limits=PATIENT)
    assert (result.code, result.channel) == (0, b"up")
    assert processes(mark) == []


# leaving things behind for the host


def test_links_and_special_files_in_a_workspace(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    source = f"""
import os, socket
os.symlink({str(secret)!r}, "link")
os.symlink({str(tmp_path)!r}, "folder")
os.symlink("/", "root")
os.symlink("good", "inner")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
open("good", "w").write("good")
os.link("good", "hard")
"""
    with Workspace() as workspace:
        assert run(source, workspace=workspace).code == 0
        assert workspace.files() == {"good": b"good", "hard": b"good"}
        for name in ("link", "folder/secret", "root/etc/passwd", "inner", "fifo", "socket"):
            with pytest.raises(FileNotFoundError):
                workspace.read(name)
        workspace.write("folder/secret", "ours")
        workspace.write("link", "ours")
        assert secret.read_text() == "secret"
        assert workspace.read("folder/secret") == b"ours"
        assert (
            run("print(open('folder/secret').read(), open('inner').read())", workspace=workspace).stdout
            == b"ours good\n"
        )


def test_a_million_files() -> None:
    source = """
import os
made = 0
try:
    for number in range(1_000_000):
        os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))
        made += 1
finally:
    os.write(int(os.environ["LATIH_CHANNEL"]), str(made).encode())
"""
    started = time.monotonic()
    with Workspace() as workspace:
        result = run(source, workspace=workspace, limits=Limits(wall=5))
        assert result.cut
        assert 0 < len(workspace.files()) <= 20_000
    assert time.monotonic() - started < 80


def test_deep_folders() -> None:
    source = "import os\ntry:\n  for _ in range(100_000): os.mkdir('d'); os.chdir('d')\nexcept OSError: pass"
    with Workspace({"kept.txt": "kept"}) as workspace:
        result = run(source, workspace=workspace, limits=Limits(wall=5))
        assert result.cut
        assert workspace.files() == {"kept.txt": b"kept"}
        assert run("print(open('kept.txt').read())", workspace=workspace).stdout == b"kept\n"


def test_locked_files_are_kept_with_their_modes() -> None:
    with Workspace({"a/b": "b", "run.sh": "#!/bin/sh\necho ran"}) as workspace:
        run("import os; os.chmod('a/b', 0); os.chmod('a', 0); os.chmod('run.sh', 0o755)", workspace=workspace)
        assert workspace.read("a/b") == b"b"
        result = run(
            "import os; print([os.stat(name).st_mode & 0o777 for name in ('a', 'run.sh')])", workspace=workspace
        )
        assert result.stdout == b"[0, 493]\n"
        assert run(["./run.sh"], workspace=workspace).stdout == b"ran\n"


def test_full_workspace_can_be_used_again() -> None:
    fill = "import os\ntry:\n  for n in range(9999): open(str(n), 'wb').write(b'x' * 5000)\nexcept OSError: pass"
    sparse = "import os\nfor n in range(50): os.truncate(os.open(str(n), os.O_CREAT | os.O_WRONLY), 4 << 20)"
    for source in (fill, sparse):
        with Workspace() as workspace:
            run(source, workspace=workspace, limits=Limits(disk=4))
            assert sum(map(len, workspace.files().values())) <= 4 << 20
            assert run("print('usable')", workspace=workspace, limits=Limits(disk=4)).stdout == b"usable\n"


def test_timed_out_program_leaves_its_files() -> None:
    source = "open('a', 'w').write('a')\nimport os\nos.fork()\nwhile True: open('b', 'w').write('b')"
    with Workspace() as workspace:
        assert run(source, workspace=workspace, limits=Limits(wall=1)).timed_out
        assert workspace.read("a") == b"a"


def test_names_that_are_no_text() -> None:
    with Workspace() as workspace:
        result = run("open(b'\\xff', 'w'); open('ok', 'w')", workspace=workspace)
        assert result.cut
        assert workspace.files() == {"ok": b""}


# the parent


def test_interrupted_parent_takes_the_program_along() -> None:
    mark = f"mark-{os.getpid()}-interrupt"
    source = f"""
import sys
from latih.sandbox import Limits, run
run([sys.executable, "-c", "import time; time.sleep(600)", {mark!r}], limits=Limits(wall=600))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for number in (signal.SIGINT, signal.SIGKILL):
        parent = subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.DEVNULL, env=env)
        try:
            wait_until(lambda: len(processes(mark)) == 2)  # the parent and the program
            parent.send_signal(number)
            assert parent.wait(60) != 0
            wait_until(lambda: processes(mark) == [])
        finally:
            parent.kill()


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
