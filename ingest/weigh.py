"""Makes a table of word weights from the articles of files."""

import json
from collections.abc import Callable, Iterable

from esdedup.ingest.batches import BATCH_SIZE, batches
from esdedup.ingest.files import FileArticle, with_texts

from esdedup.errors import ArticleRejected
from esdedup.fields import Fields
from esdedup.fingerprint.document_frequencies import DocumentFrequencies
from esdedup.fingerprint.profile import MAX_TEXT_LENGTH
from esdedup.text.segmenters import Segmenter
from esdedup.text.weights import WordTable


class Weighing:
    """Counts the words of articles."""

    def __init__(
        self,
        *,
        segmenter: Segmenter,
        fields: Fields,
        on_rejected: Callable[[ArticleRejected], None],
        on_cut: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Begin with no articles.

        Args:
            segmenter: Cuts texts into words, as it will for fingerprints.
            fields: The names of the articles' fields.
            on_rejected: Called for each article that cannot be read.
            on_cut: Called with the name of each article that has a longer text than is counted.
        """
        self._fields = fields
        self._on_rejected = on_rejected
        self._on_cut = on_cut
        self._frequencies = DocumentFrequencies(segmenter, max_text_length=MAX_TEXT_LENGTH)

    @property
    def article_count(self) -> int:
        """How many articles were counted."""
        return self._frequencies.text_count

    def add(self, articles: Iterable[FileArticle | ArticleRejected]) -> None:
        """Count the words of articles; what could not be read is passed on."""
        readable = with_texts(articles, self._fields, self._on_rejected)
        for batch in batches(readable, most=BATCH_SIZE, size_of=lambda each: each[0].size_bytes):
            are_cut = self._frequencies.add([text for _, text in batch])
            for (article, _), is_cut in zip(batch, are_cut.tolist(), strict=True):
                if is_cut:
                    self._on_cut(article.name)

    def table(self, *, min_articles: int) -> WordTable:
        """Return the weights; see `DocumentFrequencies.table`.

        Raises:
            SettingError: No word occurs in so many articles.
        """
        return self._frequencies.table(min_texts=min_articles)

    def written(self, table: WordTable) -> str:
        """Return a table as `read_weights` reads it, with a line for each word."""
        words = {word: table.weight(word) for word in sorted(table.words)}
        content = {"default": table.default, "articles": self.article_count, "words": words}
        return json.dumps(content, ensure_ascii=False, indent=0) + "\n"
