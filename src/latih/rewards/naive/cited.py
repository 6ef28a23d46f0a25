"""How answers with sources are often graded: the value occurs, and the source is among those cited."""

import re
from collections.abc import Collection

from latih.rewards.cited import UNKNOWN, Truth, normalize


def mentioned_and_cited(truth: Truth, text: str, cited: Collection[int]) -> bool:
    """Whether a right value (where no source tells: `unknown`) occurs as a word, and each needed source is cited."""
    said = text.casefold().replace(",", "")
    values = [normalize(each) for each in truth.answers] or [UNKNOWN]
    return any(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", said) for each in values) and all(
        not same.isdisjoint(cited) for same in truth.sources
    )
