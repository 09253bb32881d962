"""Languages of articles, and the analyzers of Elasticsearch that cut their texts into terms. Pure."""

from typing import Any

from esdedup.errors import SettingError

ANALYZERS = {
    "ar": "arabic",
    "bg": "bulgarian",
    "bn": "bengali",
    "ca": "catalan",
    "ckb": "sorani",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "gl": "galician",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    # Pairs of characters: words need a plugin, which few servers have.
    "ja": "cjk",
    "ko": "cjk",
    "lt": "lithuanian",
    "lv": "latvian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "pt-br": "brazilian",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "th": "thai",
    "tr": "turkish",
    "zh": "cjk",
}
"""By language (ISO 639): analyzers that every Elasticsearch has. Most find words in all their forms."""


def code_of(language: str) -> str:
    """Return which of `ANALYZERS` a language is; ``zh-CN`` is ``zh``, since regions seldom matter.

    Raises:
        SettingError: It is none.
    """
    tag = str(language).lower()
    code = next((each for each in (tag, tag.partition("-")[0]) if each in ANALYZERS), None)
    if code is None:
        raise SettingError(
            f"there is no language {language!r:.50}; choose from {', '.join(sorted(ANALYZERS))}"
        )
    return code


def analyzer_of(language: str) -> str:
    """Return the name of the analyzer for a language.

    Raises:
        SettingError: There is none.
    """
    return ANALYZERS[code_of(language)]


def kept_language(mapping: dict[str, Any]) -> str | None:
    """Return the language that an index was set up for; None: for none in particular."""
    kept = mapping.get("_meta", {}).get("esdedup", {}).get("language")
    return kept if isinstance(kept, str) and kept in ANALYZERS else None
