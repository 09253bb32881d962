"""The options about words: how they are cut, weighed and hashed."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from esdedup.cli.command import OptionGroup
from esdedup.cli.messages import say
from esdedup.errors import SettingError
from esdedup.text.hashing import TOKEN_HASHES

if TYPE_CHECKING:
    from esdedup.fingerprint.profile import Profile
    from esdedup.text.segmenters import Segmenter

_FINGERPRINT = "Fingerprint"
_HASHES = list(TOKEN_HASHES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cut(OptionGroup):
    """How texts are cut into words."""

    segmenter: Annotated[
        str | None,
        typer.Option(
            "--segmenter",
            help="How classic and keywords cut texts into words: jieba, words (letters and digits between "
            "others), or such as 3-grams.",
            rich_help_panel=_FINGERPRINT,
            show_default="jieba",
        ),
    ] = None
    dictionary: Annotated[
        Path | None,
        typer.Option(
            "--dictionary",
            metavar="FILE",
            help="Words that jieba keeps whole: one a line, perhaps with its frequency and part of speech, "
            "as in jieba's user dictionaries.",
            rich_help_panel=_FINGERPRINT,
            show_default=False,
        ),
    ] = None

    def read_segmenter(self) -> "Segmenter":
        """Return the segmenter that the options describe; say which words of its dictionary have no effect.

        Raises:
            SettingError: There is none of that name, or the dictionary cannot be read or does not go with it.
        """
        from esdedup.ingest.word_files import dictionary_words_never_cut, read_segmenter
        from esdedup.text.segmenters import JIEBA

        segmenter = read_segmenter(self.segmenter, self.dictionary) or JIEBA
        for line in dictionary_words_never_cut(segmenter):
            say(line)
        return segmenter


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words(Cut):
    """How texts are cut into words, and how these are weighed and hashed."""

    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            help="Word weights of the profiles classic and keywords: tf-idf, tf, or a JSON file, as `esdedup "
            "weights` writes it or an object of words and their weights.",
            rich_help_panel=_FINGERPRINT,
            show_default="tf-idf",
        ),
    ] = None
    stop_words: Annotated[
        Path | None,
        typer.Option(
            "--stop-words",
            metavar="FILE",
            help="Words that weigh nothing, one a line.",
            rich_help_panel=_FINGERPRINT,
            show_default=False,
        ),
    ] = None
    token_hash: Annotated[
        str | None,
        typer.Option(
            "--token-hash",
            help=f"How classic and keywords hash words: {', '.join(_HASHES[:-1])} or {_HASHES[-1]}.",
            rich_help_panel=_FINGERPRINT,
            show_default=_HASHES[0],
        ),
    ] = None

    @property
    def given_words(self) -> list[str]:
        """The options about words that are given."""
        given = [field for field in dataclasses.fields(Words) if getattr(self, field.name) is not None]
        return [f"--{field.name.replace('_', '-')}" for field in given]

    def with_words(self, profile: "Profile") -> "Profile":
        """Return a profile changed as the options say; say which words of their files have no effect.

        Raises:
            SettingError: An option does not go with the profile, or its value is wrong.
        """
        from esdedup.ingest.word_files import with_words, words_never_cut

        if not self.given_words:
            return profile
        if profile.agreement is not None:
            raise SettingError(
                f"{self.given_words[0]} goes with the profiles classic and keywords, not with {profile.name}"
            )
        changed = with_words(
            profile,
            weights=self.weights,
            segmenter=self.segmenter,
            token_hash=self.token_hash,
            dictionary=self.dictionary,
            stop_words=self.stop_words,
        )
        for line in words_never_cut(changed):
            say(line)
        return changed
