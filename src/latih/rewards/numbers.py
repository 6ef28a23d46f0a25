r"""The final number of a text, exactly, where the text has one answer and no more.

Which part of a text is its answer (`final_number`):

- What stands before `</think>` is no answer.
- A line with one of the marks `#### N` (at its start), `Answer: N` (also `The final answer is: N`, in any case) or
  `\boxed{N}` is a candidate. All that follows the mark on its line has to be the value and nothing else.
- A text without marks is a candidate as a whole: `72` and `$72.` are answers, `She has 72 clips` is none.
- More than one candidate is no answer, even where they agree.

What is a value (`read_number`):

- a whole or decimal number in ASCII digits; thousands separated, in threes, by commas, `{,}`, `\,` or narrow spaces;
- a fraction in lowest terms, `3/4`, `1 3/4`, `\frac{3}{4}` or `¾`. `8/2` is a computation that was left undone;
- a sign and a currency before it, in either order; `%`, a currency, one of the words thousand to trillion (which
  count) and up to six words of a unit (which do not) behind it: `-$1,200.50`, `2.5 million dollars`, `60 km/h`,
  `$18/day`. A time of the day is none: `12 a.m.` is hour 0;
- Markdown emphasis, of the number alone as well (`**18** dollars`), brackets (but `($5)`, which to accountants is less
  than 0), the dollars and brackets of LaTeX's math, `\text{…}` and a full stop around it.

A percentage is a number of percent: `25%` is 25, since that is what questions for a percentage have for an answer.
Nothing is ever evaluated: an expression, `9^{9^{9^9}}` for instance, is no value.
"""

import re
from fractions import Fraction
from math import gcd

from latih.rewards.answer import without_thoughts

MAX_LENGTH = 200
"""Characters of a value. It bounds the time of reading one."""

_MARK = re.compile(r"^[\s*_]*####(?!#)|\banswer(?:\s+is)?[\s*_]*:|(?=\\boxed\s*\{)", re.IGNORECASE)
_BOX = re.compile(r"\\boxed\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")

_LATEX = [
    (re.compile(r"\\(?:text|mathrm|textbf|mathbf)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\[()\[\]!]"), ""),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\,"), "\u202f"),
    (re.compile(r"\\[;: ]|~"), " "),
    (re.compile(r"\\([$%])"), r"\1"),
    (re.compile(r"\^\s*(?:\\circ|\{\\circ\})"), "°"),
]
_EMPHASIS = re.compile(r"^([\s*_`]*?)(\*{1,3}|_{1,3}|`)([^*_`]+)\2(?=\s)")
"""In pairs, and before a space: `5*y` and `2**3` are no numbers."""
_BRACKETS = re.compile(r"^([\s*_`]*)\(([^()$€£¥₹]*)\)(?=[\s*_`.]*$)")
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5"} | {
    "⅘": "4/5",
    "⅙": "1/6",
    "⅚": "5/6",
    "⅛": "1/8",
    "⅜": "3/8",
    "⅝": "5/8",
    "⅞": "7/8",
}
_GLYPHS = "".join(_VULGAR)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# In a unit these would make of the number before them another one, or offer a second.
_NO_UNIT = re.compile(
    r"""(?<![^\W_])(?:
        or|and|nor|to|not|minus|plus|times|over|divided|multiplied|point|x
      | halved|doubled|tripled|trebled|quadrupled|squared|cubed|factorial|recurring|repeating
      | half|halves|tens|dozens?|hundreds?|thousands?|millions?|billions?|trillions?
      | (?:third|quarter|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|hundred|thousand|million|billion|\w+tie)th)s?
        (?![ -]grade)  # 5 fifth graders are 5
      | zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy
      | eighty|ninety|\w+teen(?:ths?)?
      | k|mn|bn|mil|mio|lakhs?|crores?
    )(?![^\W_])""",
    re.VERBOSE | re.IGNORECASE,
)
_SHORT_SCALE = re.compile(r"\s?[mbt]\b", re.IGNORECASE)
"""Behind a currency: `$3m` is no 3."""
_CLOCK = re.compile(r"\s?[ap]\.?\ ?m\b", re.IGNORECASE)
_MINUS = "-\u2212\u2013"
_WORD = r"[^\W\d_]+(?:['\u2019./-][^\W\d_]+)*[.²³]?"
_VALUE = re.compile(
    rf"""
    [\s*_`]*
    (?P<sign>[{_MINUS}+]?)\ ?
    (?P<currency>\$|US\$|[€£¥₹]|(?:USD|EUR|GBP|JPY|INR|CAD|AUD)\ )?
    (?P<inner>[{_MINUS}+]?)\ ?
    (?:
        (?:(?P<whole>[0-9]+)(?:\ |\ ?(?=[\\{_GLYPHS}])))?
        (?: (?P<top>[0-9]+)\ ?/\ ?(?P<bottom>[0-9]+)
          | \\[dt]?frac\s*\{{\s*(?P<over>[0-9]+)\s*\}}\s*\{{\s*(?P<under>[0-9]+)\s*\}}
          | (?P<vulgar>[{_GLYPHS}]) )
      | (?P<decimal>
          (?: [0-9]{{1,3}}(?:,[0-9]{{3}})+ | [0-9]{{1,3}}(?:[\u00a0\u2009\u202f][0-9]{{3}})+ | [0-9]+ )
          (?:\.[0-9]*)?
        | \.[0-9]+ )
    )
    (?P<behind>[ \u00a0\u202f]?[%$€£¥₹¢°])?
    (?:[ \u00a0\u202f]?(?P<scale>(?a:thousand|million|billion|trillion))\b)?
    (?P<unit>(?:[ \u00a0\u202f]|\ ?(?P<rate>/)\ ?)?{_WORD}(?:\ {_WORD}){{0,5}})?
    [\s*_`$.]*
    """,
    re.VERBOSE | re.IGNORECASE,
)


def final_number(text: str) -> Fraction | None:
    r"""The number that `text` gives for its answer, or None where it gives none, or more than one.

    >>> final_number("48 / 2 = 24, and 48 + 24 = 72.\n#### 72")
    Fraction(72, 1)
    >>> final_number(r"So she pays $\boxed{\$1,200.50}$.")
    Fraction(2401, 2)
    >>> final_number("Answer: 72 or 73") is final_number("#### 72\nAnswer: 72") is None
    True
    """
    text = without_thoughts(text)
    found = [line[mark.end() :] for line in text.splitlines() if (mark := _MARK.search(line))]
    return read_number((found or [text])[0]) if len(found) <= 1 else None


def read_number(text: str) -> Fraction | None:
    r"""The value that the whole of `text` is, or None.

    >>> read_number("-$1,200.50"), read_number("2.5 million dollars"), read_number(r"1 \frac{3}{4} cups")
    (Fraction(-2401, 2), Fraction(2500000, 1), Fraction(7, 4))
    >>> read_number("8/2") is read_number("5 or six") is read_number("1,2") is read_number("9^9") is None
    True
    """
    if len(text) > MAX_LENGTH:
        return None
    text = _BOX.sub(r"\1", text)
    for pattern, plain in _LATEX:
        text = pattern.sub(plain, text)
    # What opens LaTeX's math is closed behind the number; a currency would be as well, and both mean nothing.
    found = _VALUE.fullmatch(_BRACKETS.sub(r"\1\2", _EMPHASIS.sub(r"\1\3", text).strip()))
    if found is None or (found["sign"] and found["inner"]):
        return None
    if found["rate"] and not (found["currency"] or found["behind"]):
        return None  # `3/n` is an expression
    value = _magnitude(found)
    unit = found["unit"] or ""
    # Signs that count, such as ⁴, ② and 万, are letters to a regular expression.
    numeric = any(map(str.isnumeric, re.sub(r"(?<=[^\W\d_])[²³]", "", unit)))
    if value is None or numeric or _NO_UNIT.search(unit) or _CLOCK.match(unit):
        return None
    if found["currency"] and _SHORT_SCALE.match(unit):
        return None
    value *= _SCALES[found["scale"].lower()] if found["scale"] else 1
    return -value if (found["sign"] or found["inner"]) in tuple(_MINUS) else value


def _magnitude(found: re.Match[str]) -> Fraction | None:
    if found["decimal"]:
        return Fraction(re.sub(r"[,\u00a0\u2009\u202f]", "", found["decimal"]))
    top, bottom = (_VULGAR[found["vulgar"]] if found["vulgar"] else "/").split("/")
    numerator = int(found["top"] or found["over"] or top)
    denominator = int(found["bottom"] or found["under"] or bottom)
    if denominator < 2 or gcd(numerator, denominator) > 1:
        return None
    if found["whole"] is None:
        return Fraction(numerator, denominator)
    return int(found["whole"]) + Fraction(numerator, denominator) if numerator < denominator else None
