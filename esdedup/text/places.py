"""Where in a text the points of its normal form come from."""

import numpy as np
import numpy.typing as npt

from esdedup.text.characters import CONTEXTUAL, code_points, normal_form, normal_forms
from esdedup.text.normalise import ELLIPSIS, PLAIN_ELLIPSIS

Places = npt.NDArray[np.int64]


def places_of_points(visible: str) -> Places:
    """Return the place in a visible text that each point of its normal form comes from.

    What has a normal form only together with its neighbours (a letter and its accents), and what is not
    shown, has one place: that of the first character.

    Returns:
        int64 ``(p + 1,)``, non-decreasing, for the p points that `NormalTexts` has of it without a limit;
        last the length of the text.
    """
    points = code_points(visible)
    repeats = np.where(points == ord(ELLIPSIS), len(PLAIN_ELLIPSIS), 1)
    places = np.arange(len(points)).repeat(repeats)
    plain = visible.replace(ELLIPSIS, PLAIN_ELLIPSIS)
    # No character that is its own form combines with one before it.
    is_start = normal_forms()[code_points(plain)] < CONTEXTUAL
    is_alone = is_start & np.append(is_start[1:], True)
    is_start[:1] = True
    starts = is_start.nonzero()[0]
    ends = np.append(starts[1:], len(plain))
    counts = np.ones(len(starts), np.int64)
    groups = (~is_alone[starts]).nonzero()[0]
    forms = [plain[a:b] for a, b in zip(starts[groups].tolist(), ends[groups].tolist(), strict=True)]
    # A text has few different accented letters.
    lengths = {form: len(normal_form(form)) for form in set(forms)}
    counts[groups] = [lengths[form] for form in forms]
    return np.append(places[starts].repeat(counts), len(visible))
