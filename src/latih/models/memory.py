"""The allocator: keep freed pages, since the page faults of large temporaries cost a learner a third of its speed."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8


def keep_pages() -> bool:
    """Tell glibc to keep freed memory for the next allocation instead of giving it back to the system.

    Call it once, early, in a process that trains or samples on the CPU. Returns whether it took effect
    (False where the C library is not glibc: nothing changes there).
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    settings = {_M_ARENA_MAX: 1, _M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 2**31 - 1, _M_TOP_PAD: 64 << 20}
    return all(mallopt(name, value) == 1 for name, value in settings.items())
