"""Values that programs handle badly."""

from random import Random

NUMBERS: tuple[str, ...] = (
    *("0", "-0", "-1", "1", "2", "3", "0.5", "1e-9", "-0.001", "255", "256", "65535", "65536", "2147483647"),
    *("2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e19"),
    *("1e308", "-1e308", "1e999", "-1e999", "1e-400", "nan", "NaN", "inf", "-Infinity", "1_000", "0x10", "٣", "1,5"),
    *("9" * 400, "9" * 5000, "0." + "3" * 400, "1/3", "1/0", " 7 ", "+5", "1e", ".", "-", "True", "null"),
)
TEXTS: tuple[str, ...] = (
    *("", " ", "a", "cat", "=cmd()", "+1", "-1", "@x", "'", '"', "'=1", "a,b", "a;b", "a\tb", "a\nb", "a\r\nb", "\x00"),
    *("a\x00b", "\x1b[31mred", "\u202eabc", "\u2028", "\ufeff", "\ud800", "\udcff", "é", "e\u0301", "猫", "💥", "%s%n"),
    *("{}", "{0}", "${HOME}", "<script>alert(1)</script>", "&amp;", "../x", "..", ".", "/", "//", "a/b", "a\\b", "~"),
    *("C:\\x", "/dev/null", "/dev/zero", "file:///x", "concat:a|b", "con", "x" * 255, "x" * 300, "x" * 100_000),
)
INTEGERS: tuple[int, ...] = (
    *(0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1),
    *(2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 10**400),
)


def number(random: Random) -> str:
    """The text of a number, or of what looks like one."""
    return random.choice(NUMBERS)


def text(random: Random) -> str:
    """A text that is awkward as a name, a cell or a path."""
    return random.choice(TEXTS)


def integer(random: Random) -> int:
    """A whole number at the edge of a type."""
    return random.choice((1, -1)) * random.choice(INTEGERS)
