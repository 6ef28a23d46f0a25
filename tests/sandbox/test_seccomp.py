import platform
import struct

import pytest

from latih.sandbox.seccomp import ALLOW, REFUSED, rules


def judge(number: int, architecture: int, flags: int = 0) -> int:
    """What the filter answers, by an interpreter of its five instructions. `flags`: the fourth argument."""
    lines = [struct.unpack_from("=HBBI", rules(), at) for at in range(0, len(rules()), 8)]
    at = accumulator = 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == 0x20:
            accumulator = {0: number, 4: architecture, 40: flags & 0xFFFFFFFF, 44: flags >> 32}[value]
        elif code == 0x06:
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: accumulator & value}[code]
            at += yes if holds else no


@pytest.mark.parametrize(("machine", "architecture", "column"), [("x86_64", 0xC000003E, 0), ("aarch64", 0xC00000B7, 1)])
def test_filter(monkeypatch: pytest.MonkeyPatch, machine: str, architecture: int, column: int) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    rules.cache_clear()
    refused = {numbers[column] for numbers in REFUSED.values()}
    for number in range(500):
        assert judge(number, architecture) == (0x00050026 if number in refused else ALLOW), number  # ENOSYS is 38
    mmap = {0: 9, 1: 222}[column]
    answers = {
        flags: judge(mmap, architecture, flags) for flags in (0x01, 0x02, 0x20, 0x22, 0x21, 0x4021, 1 << 32 | 0x21)
    }
    refusing = [flags for flags, answer in answers.items() if answer != ALLOW]
    assert refusing == [0x21, 0x4021, 1 << 32 | 0x21]  # MAP_SHARED is 1, MAP_ANONYMOUS 0x20
    assert {answers[flags] for flags in refusing} == {0x00050026}
    assert judge(mmap + 1, architecture, 0x21) == ALLOW
    assert judge(0, 0x40000003) == 0x00050026
    assert judge(0x40000000, architecture) == 0x00050026
    rules.cache_clear()


def test_unknown_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    rules.cache_clear()
    assert rules() == b""
    rules.cache_clear()
