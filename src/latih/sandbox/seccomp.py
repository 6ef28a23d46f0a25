"""The system calls that programs inside do not get: memory that no limit counts, and doors into the kernel.

What is refused answers ENOSYS, as on a kernel that lacks it, so that programs fall back. Numbers are those of the
kernel's `unistd` headers, the form of a filter is that of `man 2 seccomp`.
"""

import errno
import functools
import platform
import struct

LOAD, JUMP_EQUAL, JUMP_FROM, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
X32 = 0x40000000
FLAGS = 40  # the lower half of the fourth argument, where bytes go from low to high

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The kernel's number of the architecture, and its column below."""

MMAP = (9, 222)
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
"""`mmap` with both is refused: a process may hold such pages without being resident in them (`madvise`, a child that
touched them and is gone), so nothing here could count them. Files in /tmp, which have a limit, can be shared instead.
"""

REFUSED = {
    # memory outside of every limit of a process
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # large and often broken parts of the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
}


@functools.cache
def rules() -> bytes:
    """The filter for this machine; empty where its architecture is not known here."""
    number, column = ARCHITECTURES.get(platform.machine(), (0, 0))
    if not number:
        return b""
    refused = sorted(numbers[column] for numbers in REFUSED.values())
    count = len(refused) + 4
    lines = [
        (LOAD, 0, 0, 4),  # the architecture of the call
        (JUMP_EQUAL, 0, count + 3, number),  # a foreign one is refused
        (LOAD, 0, 0, 0),  # the number of the call
        (JUMP_FROM, count + 1, 0, X32),
        *((JUMP_EQUAL, count - index, 0, each) for index, each in enumerate(refused)),
        (JUMP_EQUAL, 0, 3, MMAP[column]),
        (LOAD, 0, 0, FLAGS),
        (JUMP_SET, 0, 1, MAP_ANONYMOUS),
        (JUMP_SET, 1, 0, MAP_SHARED),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERRNO | errno.ENOSYS),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
