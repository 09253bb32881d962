"""`SidecarForest`: articles are fingerprinted here, and assigned by a sidecar."""

import threading
from collections.abc import Iterable

import numpy as np
from esdedup.ingest.actions import ArticleAction
from esdedup.ingest.assign_format import ANSWER_TYPE, ASK_TYPE, Malformed, ask_bytes, read_answer
from esdedup.ingest.assigned import Assigned, assigned_articles
from esdedup.ingest.fingerprinted_pages import Bools, FingerprintedPages, PassagesOfPages
from esdedup.ingest.learn import OnLearned
from esdedup.ingest.sidecar_connection import SidecarConnection

from esdedup.elastic.forest.expiry import Expired
from esdedup.errors import SettingError, SidecarError, SidecarUnavailable
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.profile import Profile
from esdedup.fingerprint.signature import Fingerprints
from esdedup.forest import Assignment, Kind
from esdedup.forest.model import NO_TIME
from esdedup.sites import RawPage
from esdedup.text.passages import Passages

_PATH = "/v1/assign"
# In a forest that knows nothing yet, with many feeders, it takes some five.
_MOST_ROUNDS = 50


class SidecarForest:
    """Assigns the articles of several threads, which wait for the sidecar at the same time.

    A request that was not answered is repeated, perhaps to another sidecar. What was decided is found again.
    """

    def __init__(self, connection: SidecarConnection, *, name: str, profile: Profile) -> None:
        """Send nothing yet.

        Args:
            connection: To the sidecars; closed with this object.
            name: Of their forest.
            profile: Of their forest.
        """
        self._connection = connection
        self._name = name
        self._profile = profile
        self._fingerprinter = Fingerprinter(profile)
        # A fingerprinter is for one thread at a time.
        self._fingerprinting = threading.Lock()

    def assign(self, articles: list[ArticleAction], *, backfill: bool) -> list[Assigned]:
        """Return the articles with what was decided for them.

        Raises:
            SettingError: A backfill is asked for.
            SidecarUnavailable: No sidecar takes them.
            SidecarError: A sidecar refuses them.
        """
        if backfill:
            raise SettingError("backfill: a sidecar takes the time from the clock; backfill without one")
        fingerprints, pages, omitted = self._fingerprinted(articles)
        # What the articles at which the core fails keep.
        nothing = bytes(self._profile.signature_dtype.itemsize)
        none = Assignment(Kind.WITHOUT_FINGERPRINT, None, None, 0, NO_TIME, nothing)
        decided = [none] * len(articles)
        are_left = fingerprints.faults == ""
        for _ in range(_MOST_ROUNDS):
            if not are_left.any():
                return assigned_articles(
                    articles, fingerprints, decided, profile=self._profile, backfill=False
                )
            rest, own = pages.where(are_left), are_left[pages.passages.texts]
            sent = FingerprintedPages(
                of=rest,
                omitted=omitted[own],
                signatures=fingerprints.signatures[are_left],
                exists=fingerprints.exists[are_left],
            )
            answers, omitted[own] = self._ask(rest, sent)
            for at, each in zip(np.flatnonzero(are_left).tolist(), answers, strict=True):
                decided[at] = each or none
            are_left[are_left] = [each is None for each in answers]
            # Others have taught meanwhile what is boilerplate in these.
            left = [articles[at] for at in np.flatnonzero(are_left).tolist()]
            anew = self._fingerprints(left, omitted[are_left[pages.passages.texts]])
            fingerprints = fingerprints.with_replaced(are_left, anew)
            are_left &= fingerprints.faults == ""
        raise SidecarUnavailable(
            f"what is left out of articles has changed {_MOST_ROUNDS} times while they were fingerprinted: "
            "send them again",
            address=self._connection.address,
        )

    def learn(self, texts: Iterable[RawPage], *, on_learned: OnLearned) -> int:  # noqa: ARG002
        """Refuse to: only the forest's owner learns without assigning.

        Raises:
            SettingError: Always.
        """
        raise SettingError("learn: the sidecar owns the forest; run `esdedup learn` before you start it")

    def expire(self) -> Expired:
        """Refuse to: a sidecar does it by itself.

        Raises:
            SettingError: Always.
        """
        raise SettingError(
            "expire: the sidecar deletes expired nodes by itself, every expire_every_s seconds"
        )

    def close(self) -> None:
        """Close the connections; the next article opens others."""
        self._connection.close()

    def _fingerprinted(self, articles: list[ArticleAction]) -> tuple[Fingerprints, PassagesOfPages, Bools]:
        """Return the fingerprints, and what was left out of them, as far as the sidecar knows that by now."""
        with self._fingerprinting:
            parsed = list(self._fingerprinter.parsed([each.text for each in articles]))
            pages = PassagesOfPages(
                passages=Passages.joined([each.passages for each in parsed]),
                pages=np.concatenate([each.pages for each in parsed]),
                sites=[each.site for each in articles],
                articles=[each.id for each in articles],
            )
        if self._profile.keep_boilerplate:
            omitted = np.zeros(len(pages.passages.hashes), bool)
        else:
            _, omitted = self._ask(pages, None)
        with self._fingerprinting:
            return self._fingerprinter.fingerprints_of(parsed, omitted), pages, omitted

    def _fingerprints(self, articles: list[ArticleAction], omitted: Bools) -> Fingerprints:
        with self._fingerprinting:
            parsed = list(self._fingerprinter.parsed([each.text for each in articles]))
            return self._fingerprinter.fingerprints_of(parsed, omitted)

    def _ask(
        self, pages: PassagesOfPages, fingerprinted: FingerprintedPages | None
    ) -> tuple[list[Assignment | None], Bools]:
        body = ask_bytes(pages, fingerprinted, forest=self._name, profile=self._profile)
        content = self._connection.post(_PATH, body, content_type=ASK_TYPE)
        try:
            decided, omitted = read_answer(content, profile=self._profile)
        except Malformed as error:
            raise SidecarError(
                f"the answer is not {ANSWER_TYPE}: {error}", address=self._connection.address
            ) from error
        if len(decided) != len(pages) or len(omitted) != len(pages.passages.hashes):
            raise SidecarError("the answer is for other pages", address=self._connection.address)
        return decided, omitted
