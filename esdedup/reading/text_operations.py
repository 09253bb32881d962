"""What a reader can ask about a text that need not be indexed, as generators: see `operations`."""

from collections.abc import Sequence

from esdedup.elastic.forest.learned import LearnedCopy
from esdedup.elastic.forest.lookup import what_is_left_out
from esdedup.elastic.requests import Requests
from esdedup.errors import SettingError
from esdedup.fields import refuse_surrogates
from esdedup.reading.cluster_members import similar_to_text
from esdedup.reading.included import including
from esdedup.reading.paging import Paging
from esdedup.reading.results import SimilarPage
from esdedup.reading.scope import Scope
from esdedup.sites import site_name
from esdedup.text.left_out import LeftOut


class TextOperations:
    """The operations on texts, by the forest of one scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._learned = LearnedCopy()

    def similar_to_text(
        self,
        index: str,
        text: str,
        *,
        site: str | None = None,
        source_includes: Sequence[str] = (),
        page: int = 1,
        size: int = 20,
        after: str | None = None,
    ) -> Requests[SimilarPage]:
        """Return the articles of the cluster that a text would join if it arrived now, newest first.

        The forest decides as it does for an article that is fed without `backfill`. Nothing is written.

        Args:
            index: An index, alias or pattern.
            text: Any text, indexed or not.
            site: The site that it comes from, a name or an address, for the pins of that site.
            source_includes: Names of further fields of the articles, which each row then has in `included`;
                at most 20.
            page: From 1; `page` times `size` is at most 10,000.
            size: Articles on a page, at most 1,000.
            after: The cursor `next` of the previous page, in place of `page`; cursors reach any depth.

        Returns:
            A page whose root is None if the text would start a cluster of its own, or would get no
            fingerprint.

        Raises:
            SettingError: A value is invalid, or the page lies too deep.
            ArticleRejected: The text contains a lone surrogate (half a character).
            ForestError: There is no forest, or it has another profile.
            IndexNotReady: The index is missing, or lacks the fields.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        _check_text(text)
        found = similar_to_text(
            self._scope,
            index,
            text,
            site=site,
            learned=self._learned,
            paging=Paging(page=page, size=size, after=after),
        )
        return including(found, index, source_includes)

    def left_out(self, text: str, *, site: str | None = None, is_fresh: bool = True) -> Requests[LeftOut]:
        """Return what the forest leaves out of a text as boilerplate.

        Nothing is left out if the profile keeps boilerplate. A copy of what the forest has learned stays in
        memory (``python -m benchmarks boilerplate`` measures it); each call then asks by one short request
        whether there is more.

        Args:
            text: Any text, indexed or not, with or without markup.
            site: The site that it comes from, a name or an address, for the pins of that site.
            is_fresh: Read what the forest has learned since the last time; if not, what was read counts.

        Raises:
            SettingError: The text is not a string.
            ArticleRejected: The text contains a lone surrogate (half a character).
            ForestError: There is no forest, or it has another profile.
            ServerError: Elasticsearch does not answer, or refuses the request.
        """
        _check_text(text)
        scope = self._scope
        return what_is_left_out(
            text,
            forest=scope.forest,
            profile=scope.profile,
            learned=self._learned,
            pins=scope.pins,
            site=None if site is None else site_name(site),
            is_fresh=is_fresh,
        )


def _check_text(text: str) -> None:
    """Refuse what cannot be looked up."""
    if not isinstance(text, str):
        raise SettingError(f"the text is a {type(text).__name__}, not a string")
    refuse_surrogates(text, name="the text")
