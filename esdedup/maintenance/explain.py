"""Explains two texts."""

from esdedup.boilerplate.pins import NO_PINS, Pins, refuse_useless
from esdedup.boilerplate.untaught import omit_untaught
from esdedup.fingerprint.profile import DEFAULT, Profile
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.explanation import Explanation
from esdedup.sites import site_name


def explain(
    one: str,
    other: str,
    profile: Profile = DEFAULT,
    *,
    pins: Pins = NO_PINS,
    sites: tuple[str | None, str | None] = (None, None),
) -> Explanation:
    """Explain why two raw texts are near each other under a profile, or why they are not.

    Of each is left out what a forest leaves out before it has learned anything.

    Args:
        one: The first text, with or without markup.
        other: The second text.
        profile: Decides fingerprints and thresholds.
        pins: What is pinned as boilerplate or as text.
        sites: The sites of the two, names or addresses, for the pins of these sites.

    Raises:
        SettingError: The profile keeps boilerplate, so pins would have no effect.
    """
    refuse_useless(pins, keep_boilerplate=profile.keep_boilerplate)
    names = [None if site is None else site_name(site) for site in sites]
    explainer = Explainer(profile, omit_on=omit_untaught(pins))
    return explainer.explain(one, other, sites=(names[0], names[1]))
