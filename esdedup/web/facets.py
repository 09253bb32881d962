"""What narrows a list: facets, whose values are links that choose them or give them up. Pure.

A link has the parameters of the list that it leads to, for `formats.address`.
"""

import dataclasses
from typing import Any

from esdedup.reading.overview import Facet, Overview
from esdedup.reading.scope import is_language
from esdedup.web.bounds import MAX_VALUE
from esdedup.web.form import PageForm
from esdedup.web.languages import Language

_AT_ONCE = 8

Parameters = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FacetLink:
    """A value, and the list in which it is chosen, or given up if it is chosen now."""

    label: str
    articles: int
    is_chosen: bool
    parameters: Parameters


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShownFacet:
    """A field's values."""

    heading: str
    # Those that are shown at once, and those that unfold.
    links: list[FacetLink]
    more: list[FacetLink]
    # Articles in values that are not listed.
    other_articles: int
    is_exact: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Narrowing:
    """Something that narrows a list, and the list without it."""

    label: str
    parameters: Parameters


def facets(overview: Overview, form: PageForm, language: Language) -> list[ShownFacet]:
    """Return the facets of what a list shows, those for the sources first."""
    found = [_shown(each, form, language) for each in overview.facets]
    if overview.sources is not None:
        found.insert(0, _shown(overview.sources, form, language, is_source=True))
    return [each for each in found if each.links]


def narrowings(form: PageForm, language: Language) -> list[Narrowing]:
    """Return what narrows a list, beside its words."""
    _ = language.gettext
    found = []
    if form.since or form.until:
        without = changed(form, since="", until="")
        found.append(Narrowing(label=_period(form, language), parameters=without))
    found += [
        Narrowing(label=each, parameters=changed(form, source=_toggled(form.source, each)))
        for each in form.source
    ]
    found += [
        Narrowing(
            label=_label_of_condition(each, language),
            parameters=changed(form, where=_toggled(form.where, each)),
        )
        for each in form.where
    ]
    if form.only is not None:
        names = {"similar": _("With similar"), "single": _("Without similar")}
        found.append(Narrowing(label=names[form.only], parameters=changed(form, only="")))
    return found


def changed(form: PageForm, **changes: object) -> Parameters:
    """Return the parameters of the first page of a list that differs from this one."""
    return form.parameters | {"size": form.size_if_given, "page": "", "after": ""} | changes


def _period(form: PageForm, language: Language) -> str:
    _ = language.gettext
    # A day is written as one, and a moment with its time.
    since, until = (
        (language.day if len(text) == len("2026-11-22") else language.utc)(text)
        for text in (form.since, form.until)
    )
    if form.since and form.until:
        return since if since == until else _("%(first)s to %(last)s", first=since, last=until)
    return _("from %(time)s", time=since) if form.since else _("until %(time)s", time=until)


def _label_of_condition(condition: str, language: Language) -> str:
    field, _, value = condition.partition(":")
    return f"{_heading_of(field, language)}: {_label_of(field, value, language)}"


def _heading_of(field: str, language: Language) -> str:
    """Return what a field is called: by its own name, if it does not tell the language of articles."""
    return language.gettext("Language") if is_language(field) else field


def _label_of(field: str, value: str, language: Language) -> str:
    """Return what a value is called: a language by its name."""
    return language.name_of(value) if is_language(field) else value


def _shown(facet: Facet, form: PageForm, language: Language, *, is_source: bool = False) -> ShownFacet:
    links = []
    for each in facet.values:
        # A longer value takes too much of an address, and is cut where it is shown; a blank one has no name.
        if len(each.value) > MAX_VALUE or not each.value.strip():
            continue
        if is_source:
            label, change = each.value, {"source": _toggled(form.source, each.value)}
        else:
            label = _label_of(facet.field, each.value, language)
            change = {"where": _toggled(form.where, f"{facet.field}:{each.value}")}
        links.append(
            FacetLink(
                label=label,
                articles=each.articles,
                is_chosen=each.is_chosen,
                parameters=changed(form, **change),
            )
        )
    # Chosen ones stay in sight.
    links.sort(key=lambda link: not link.is_chosen)
    return ShownFacet(
        heading=language.gettext("Sources") if is_source else _heading_of(facet.field, language),
        links=links[:_AT_ONCE],
        more=links[_AT_ONCE:],
        other_articles=facet.other_articles,
        is_exact=facet.is_exact,
    )


def _toggled(chosen: list[str], value: str) -> list[str]:
    return [each for each in chosen if each != value] if value in chosen else [*chosen, value]
