"""Custom weights, dictionaries and stop words: their files, errors, and effect on fingerprints."""

import importlib.util
import math
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from esdedup.ingest.files import FileArticle
from esdedup.ingest.word_files import (
    count_words,
    read_segmenter,
    read_weights,
    with_words,
    words_never_cut,
    written_weights,
)
from hypothesis import given
from hypothesis import strategies as st

from esdedup import CLASSIC, KEYWORDS, ArticleRejected, Fields, Profile, SettingError
from esdedup.fingerprint import MAX_TEXT_LENGTH
from esdedup.fingerprint.document_frequencies import DocumentFrequencies
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.text.segmenters import Dictionary, Jieba, NGrams, Segmenter, UnicodeWords, can_yield
from esdedup.text.weights import TF_IDF, StopWords, Tf, WordTable
from tests import sample
from tests.support.normal_forms import normalise
from tests.unit.test_fingerprinter import EN, ZH, names

Write = Callable[[str, str], Path]
TEXTS = [article["text"] for article in sample.articles(200)]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_text(content, "utf-8")
        return path

    return write


def test_files_without_words_are_refused(write: Write) -> None:
    """Such a file would change the profile's label without changing any fingerprint."""
    for content in ("", " \n\n", "\ufeff\n"):
        path = write("words", content)
        with pytest.raises(SettingError, match=f"{path} has no words: leave it out"):
            with_words(KEYWORDS, dictionary=path)
        with pytest.raises(SettingError, match=f"{path} has no words: leave it out"):
            with_words(KEYWORDS, stop_words=path)
    with pytest.raises(SettingError, match="leave it out"):
        Dictionary.of_words([])
    with pytest.raises(SettingError, match="the list of stop words is empty"):
        StopWords([])


def table_of(texts: list[str], *, segmenter: Segmenter = UnicodeWords(), min_texts: int = 1) -> WordTable:  # noqa: B008
    frequencies = DocumentFrequencies(segmenter, max_text_length=1_000)
    frequencies.add(texts)
    return frequencies.table(min_texts=min_texts)


def test_a_word_is_weighted_by_inverse_document_frequency() -> None:
    texts = ["<b>Fish</b> and fish!", "FISH or ｆｏｗｌ", "fowl and – well – game", "salt"]
    table = table_of(texts)
    weights = {word: table.weight(word) for word in table.words}
    once, twice = round(math.log(5), 6), round(math.log(5 / 2), 6)
    assert weights == {
        **dict.fromkeys(("or", "well", "game", "salt"), once),
        **dict.fromkeys(("fish", "and", "fowl"), twice),
    }
    # The median of three weights of 0.92 and four weights of 1.61.
    assert table.weight("unknown") == table.default == once


def test_rare_words_get_the_median_weight() -> None:
    texts = ["a b c d", "a b c", "a b", "a"]
    table = table_of(texts, min_texts=2)
    assert sorted(table.words) == ["a", "b", "c"]
    assert table.weight("d") == table.weight("b") == round(math.log(5 / 3), 6)
    # With an even number of weights, the upper median is used, as in the TF-IDF table.
    assert table_of(texts, min_texts=3).default == round(math.log(5 / 3), 6)


def test_words_are_counted_within_the_compared_length() -> None:
    assert set(table_of(["abc d"], segmenter=NGrams(2)).words) == {"ab", "bc", "cd"}
    frequencies = DocumentFrequencies(Jieba(), max_text_length=6)
    assert frequencies.add(["地铁开通了", "地铁开通了，真好", ""]).tolist() == [False, True, False]
    assert set(frequencies.table().words) == {"地铁", "开通", "了"}
    assert frequencies.text_count == 3


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(SettingError, match="no word occurs in 2 or more of the 1 articles"):
        table_of(["one two"], min_texts=2)
    with pytest.raises(SettingError, match="of the 0 articles"):
        table_of([])


def test_a_written_table_is_read_back_unchanged(write: Write) -> None:
    rejected: list[ArticleRejected] = []
    found = DocumentFrequencies(Jieba(), max_text_length=MAX_TEXT_LENGTH)
    articles: list[FileArticle | ArticleRejected] = [
        *(FileArticle(place="x", id="1", article={"text": text}, size_bytes=9) for text in TEXTS),
        FileArticle(place="x:1", id="1", article={"body": "no text"}, size_bytes=9),
        ArticleRejected("x:2", "is not JSON"),
    ]
    count_words(articles, found, fields=Fields(), on_rejected=rejected.append)
    table = found.table(min_texts=2)
    again = read_weights(str(write("weights.json", written_weights(table, articles=found.text_count))))
    assert again.name == table.name
    assert [again.weight(word) for word in ("地铁", "unheard-of")] == [table.weight("地铁"), table.default]
    assert [each.reason for each in rejected] == ["has no field 'text', or it is null", "is not JSON"]
    assert found.text_count == len(TEXTS)


def test_every_word_of_a_custom_table_can_be_cut() -> None:
    """Words whose segmentation depends on their neighbours can be cut too."""
    table = table_of(TEXTS, segmenter=Jieba())
    assert words_never_cut(KEYWORDS.with_changes(weighting=table)) == []
    alone = [word for word in table.words if list(Jieba().cut(word)) != [word]]
    assert alone


@given(
    st.text(st.sampled_from("ab1 .,-地铁开通了'é")), st.sampled_from([UnicodeWords(), NGrams(1), NGrams(3)])
)
def test_every_word_of_a_longer_text_can_be_cut(text: str, segmenter: Segmenter) -> None:
    (normal,) = normalise([text + "and more"])
    assert all(can_yield(segmenter, word) for word in segmenter.cut(normal))


def test_words_that_are_never_cut_are_reported(write: Write) -> None:
    weights = '{"long-term": 1, "new york": 2, "--": 3, "地铁": 4, "Apfel": 5}'
    files: dict[str, Any] = {
        "weights": str(write("weights.json", weights)),
        "stop_words": write("stop.txt", "，\nthe\n云陵市地铁\n"),
    }
    never = "have no effect: the segmenter never yields them, for example"
    advice = "add them to a dictionary of jieba, or choose another segmenter"
    assert words_never_cut(with_words(CLASSIC, **files)) == [
        f"1 of 3 stop words {never} '云陵市地铁' (as 云陵市 | 地铁); {advice}",
        f"2 of 5 words with a weight {never} 'long-term' (as long | - | term), 'new york' (as new |   | "
        f"york); {advice}",
    ]
    dictionary = write("dictionary.txt", "long-term\n云陵市地铁 100 n\nnew york 9\n")
    assert words_never_cut(with_words(CLASSIC, dictionary=dictionary, **files)) == [
        f"1 of 5 words with a weight {never} 'new york' (as new |   | york); {advice}",
        f"1 of 3 words of the dictionary {never} 'new york' (as new |   | york); raise their frequencies; "
        "jieba splits at spaces, at most punctuation and letters beyond a to z",
    ]
    assert words_never_cut(CLASSIC) == []


def test_long_words_are_shortened_in_reports(write: Write) -> None:
    article = write("stop.txt", "the ferry " * 1_000)
    (line,) = words_never_cut(with_words(CLASSIC, stop_words=article))
    assert "'the ferry the ferry" in line
    assert "…" in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("word", "can_be"),
    [
        ("地铁", True), ("3.14", True), ("12%", True), ("c++", True), ("a-b", False), ("二云陵", True),
        ("51区", False), ("地铁开通", False), ("new york", False),
    ],
)  # fmt: skip
def test_words_that_jieba_can_cut_are_recognised(word: str, can_be: bool) -> None:
    assert Jieba().can_yield(word) is can_be


@pytest.mark.parametrize(("word", "can_be"), [("ab", False), ("abc", True), ("abcd", False), ("a b", False)])
def test_words_that_are_n_grams_are_recognised(word: str, can_be: bool) -> None:
    assert can_yield(NGrams(3), word) is can_be


def test_a_dictionary_keeps_its_words_whole() -> None:
    text = "A51区：9架飞碟。Long-Term計劃"
    (normal,) = normalise([text])
    parts = ["a51", "区", ":", "9", "架", "飞碟", "。", "long", "-", "term", "计划"]
    assert list(Jieba().cut(normal)) == parts
    # Words of the dictionary are normalised for case, width and script, as texts are.
    own = Jieba(Dictionary.of_words(["A51區", "９架", "LONG-TERM"]))
    assert list(own.cut(normal)) == ["a51区", ":", "9架", "飞碟", "。", "long-term", "计划"]
    # Words of Latin letters are also cut out of longer words, as in jieba.
    assert list(Jieba(Dictionary.of_words(["new"])).cut("news")) == ["new", "s"]
    # Segmenters without this dictionary are not affected.
    assert list(Jieba().cut("9架")) == ["9", "架"]


def test_dictionary_words_of_frequency_0_are_split() -> None:
    """Without the entry, jieba guesses the word `之道`, which its own dictionary does not contain."""
    own = Jieba(Dictionary.of_lines(["之道 0", "C++ 0", "算法 0", "算法 9"], name="words.txt"))
    assert list(own.cut("算法之道")) == ["算法", "之", "道"]
    assert list(own.cut("c++")) == ["c", "++"]
    assert not own.can_yield("之道")
    assert Jieba().can_yield("之道")


def test_dictionaries_have_the_format_of_jieba(write: Write) -> None:
    lines = "\ufeff云计算 5\n李小福 2 nr\n\n创新办\n  台中  \nEdu Trust认证 2000\nc4 nz\n"
    segmenter = read_segmenter(None, write("words.txt", lines))
    assert isinstance(segmenter, Jieba)
    assert segmenter.dictionary is not None
    assert segmenter.dictionary.entries == (
        ("云计算", 5), ("李小福", 2), ("创新办", None), ("台中", None), ("edu trust认证", 2000), ("c4", None),
    )  # fmt: skip


@pytest.mark.slow
def test_a_dictionary_segments_texts_as_in_jieba(tmp_path: Path) -> None:
    entries = ["云陵市 50 ns", "地铁七号线", "试运行 3", "首班列车 20 n", "北郊车辆段", "扫码"]
    entries += ["台中 0", "之道 0", "c++ 0"]
    path = tmp_path / "words.txt"
    path.write_text("\n".join(entries), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba

        jieba.setLogLevel("ERROR")
        theirs = jieba.Tokenizer()
        theirs.load_userdict(str(path))
    ours = read_segmenter("jieba", path)
    assert ours is not None
    assert ours.cut(normalise([ZH])[0]) != Jieba().cut(normalise([ZH])[0])
    for text in normalise([ZH, EN, "算法之道 in C++", *TEXTS[:60]]):
        assert list(ours.cut(text)) == theirs.lcut(text)


OWN_WORDS = Jieba(Dictionary.of_words(["首班列车", "北郊车辆段", "ninety"]))
OWN = {
    "dictionary": (CLASSIC.with_changes(segmenter=OWN_WORDS), "e8fc0079e8e8e747", "f3c8460383427068"),
    "stop words": (
        CLASSIC.with_changes(weighting=StopWords(["首班", "扫码", "cars", "ferry"])),
        "f8ec40bba8e8d35d",
        "e3c8420381407040",
    ),
    "stop words, tf": (
        KEYWORDS.with_changes(weighting=StopWords(["即可", "cars"], Tf())),
        "782450b3e8718fed",
        "638a620682404042",
    ),
    "table": (
        CLASSIC.with_changes(weighting=WordTable({"列车": 9, "cars": 5}, default=0.5)),
        "4c3d52c729d4f89d",
        "96fc97ba730303a8",
    ),
}


@pytest.mark.parametrize(("profile", "zh", "en"), OWN.values(), ids=OWN)
def test_fingerprints_match_the_golden_vectors(profile: Profile, zh: str, en: str) -> None:
    """As in `test_fingerprinter.py`, a change here makes existing fingerprints incomparable."""
    assert names(Fingerprinter(profile), [ZH, EN]) == [zh, en]
    assert names(Fingerprinter(pickle.loads(pickle.dumps(profile))), [ZH, EN]) == [zh, en]


def test_labels_of_custom_words_do_not_change() -> None:
    assert {name: profile.label for name, (profile, *_) in OWN.items()} == {
        "dictionary": "classic-4-dbb17f74",
        "stop words": "classic-4-4f629fba",
        "stop words, tf": "keywords-4-02c3713a",
        "table": "classic-4-83d23a52",
    }


def test_labels_differ_if_contents_differ() -> None:
    profiles = [
        CLASSIC,
        *(
            CLASSIC.with_changes(segmenter=Jieba(Dictionary.of_lines(lines, name="words")))
            for lines in (["a"], ["b"], ["a 1"], ["a", "b"])
        ),
        *(
            CLASSIC.with_changes(weighting=weighting)
            for weighting in (
                *(StopWords(["a"]), StopWords(["a"], Tf()), StopWords(["b"]), StopWords(["a", "b"])),
                *(WordTable({"a": 1}), WordTable({"a": 1}, default=1), StopWords(["a"], WordTable({"a": 1}))),
            )
        ),
    ]
    assert len({profile.label for profile in profiles}) == len(profiles)
    # The order of stop words, parts of speech and the width of letters make no difference.
    assert StopWords(["ａ", "b"]).name == StopWords(["b", "a", "a"]).name
    of_lines = Dictionary.of_lines(["ａ 3 n"], name="words")
    assert Jieba(of_lines).name == Jieba(Dictionary.of_lines(["a 3"], name="other")).name


def test_all_word_files_can_be_combined(write: Write) -> None:
    profile = with_words(
        KEYWORDS,
        weights=str(write("weights.json", '{"default": 2, "words": {"地铁": 7, "的": 3}}')),
        token_hash="crc32",
        dictionary=write("words.txt", "地铁七号线\n"),
        stop_words=write("stop.txt", "的\n\n是\n"),
    )
    weights = {
        each.word: each.weight for each in Fingerprinter(profile).features("地铁七号线的地铁是好的地铁")
    }
    assert weights == {"地铁七号线": 2, "地铁": 14, "好": 2}
    assert profile.token_hash.name == "crc32"
    assert with_words(KEYWORDS) == KEYWORDS


def test_a_word_of_a_table_has_one_weight() -> None:
    assert WordTable({"Ferry": 2, "ｆｅｒｒｙ": 2, "FERRY": 2.0}).words == ["ferry"]
    with pytest.raises(SettingError, match="the word 'FERRY' is in the table twice, with different weights"):
        WordTable({"Ferry": 2, "FERRY": 3})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "not a JSON object of words and numbers"),
        ("nonsense", "cannot read the weights"),
        ("[" * 100_000, "cannot read the weights"),
        ("ferry 3\n\nships x\n", "neither a JSON object nor lines of a word and its weight: see line 3"),
        ("ferry\t3\n", "see line 1"),
        (" 3\n", "neither a JSON object nor lines of a word .* line 1"),
        ("ferry nan\n", "the weight of 'ferry' must be 0, or a number"),
        ("\n", "it has no words"),
        ('{"a": NaN}', "the weight of 'a' must be 0, or a number"),
        ('{"a": "b"}', "the weight of 'a' must be 0, or a number"),
        ('{"a": -1}', "the weight of 'a' must be"),
        ('{"default": -1, "words": {"a": 1}}', "the weight of 'default' must be"),
        ('{"default": null, "words": {"a": 1}}', "the weight of 'default' must be"),
        ('{"default": 1, "words": {"a": {}}}', "the weight of 'a' must be"),
        ('{"words": {"a": 1}, "defualt": 2}', "has 'defualt' next to 'words'"),
        ('{"a": 1, "b": 1, "a": 2}', "'a' occurs twice, with different values"),
        ('{"words": {"a": 1, "a": 2}}', "'a' occurs twice, with different values"),
        ("{}", "no word has a weight above 0"),
        ('{"default": 0, "words": {"a": 0}}', "no word has a weight above 0"),
    ],
)
def test_invalid_weight_files_are_refused(write: Write, content: str, message: str) -> None:
    with pytest.raises(SettingError, match=message) as refused:
        read_weights(str(write("weights.json", content)))
    assert "weights.json" in str(refused.value)


def test_weights_may_be_lines_like_jiebas_table(write: Write) -> None:
    table = read_weights(str(write("idf.txt", "渡輪 1.5\n渡轮 2.5\nShips 3\nferry line 9\nSHIPS 4\n\n")))
    # The word in normal form wins, otherwise the first; other words have the upper median.
    weights = {"渡轮": 2.5, "ships": 3, "ferry line": 9, "other": 3}
    assert {word: table.weight(word) for word in weights} == weights


def test_jiebas_own_table_gives_the_default_weights() -> None:
    spec = importlib.util.find_spec("jieba")
    assert spec is not None
    assert spec.origin is not None
    table = read_weights(str(Path(spec.origin).parent / "analyse/idf.txt"))
    assert isinstance(table, WordTable)
    assert table.default == TF_IDF.weight("a word that is not in the table")
    differing = [word for word in table.words if table.weight(word) != TF_IDF.weight(word)]
    # Words of which the table has only a traditional form, which texts in normal form never contain.
    assert len(differing) < 400


def test_a_table_may_repeat_entries_and_omit_words(write: Write) -> None:
    table = read_weights(str(write("weights.json", '{"default": 2, "words": {"a": 0, "a": 0}}')))
    assert [table.weight(word) for word in ("a", "other")] == [0, 2]


def test_a_table_may_have_a_word_named_default(write: Write) -> None:
    table = read_weights(str(write("weights.json", '{"default": 3, "words": 2}')))
    assert [table.weight(word) for word in ("default", "words", "other")] == [3, 2, 0]


def test_unreadable_word_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(SettingError, match=r"latin: it is not UTF-8 \(byte 4\)"):
        with_words(CLASSIC, stop_words=tmp_path / "latin")
    with pytest.raises(SettingError, match=r"cannot read .*none: No such file"):
        with_words(CLASSIC, dictionary=tmp_path / "none")
    with pytest.raises(SettingError, match=r"cannot read .*: Is a directory"):
        read_weights(str(tmp_path))
    with pytest.raises(SettingError, match="the weights '' are neither tf-idf nor tf, nor a file"):
        read_weights("")
    with pytest.raises(SettingError, match=r"cannot read .*: File name too long"):
        read_weights("x" * 300)
    (tmp_path / "words").write_text("a\nb 99999999999\n")
    with pytest.raises(SettingError, match=r"words:2: the frequency 99999999999 is more than 2,147,483,647"):
        with_words(CLASSIC, dictionary=tmp_path / "words")
    # Very long lines occur if a file of articles is given by mistake.
    (tmp_path / "words").write_text("a" * 256 + "\n" + "b" * 257)
    with pytest.raises(SettingError, match=r"words:2: a word of 257 characters, which begins 'b{20}';"):
        with_words(CLASSIC, dictionary=tmp_path / "words")
    (tmp_path / "words").write_text("a " + "9" * 9_000)
    with pytest.raises(SettingError, match=r"words:1: the frequency 9{20} is more"):
        with_words(CLASSIC, dictionary=tmp_path / "words")
    (tmp_path / "words").write_text("\nnew york\n")
    with pytest.raises(SettingError, match=r"words:2: 'york' is not a part of speech .* one word per line"):
        with_words(CLASSIC, dictionary=tmp_path / "words")
    with pytest.raises(SettingError, match="a dictionary applies to the segmenter jieba, not to 2-grams"):
        with_words(CLASSIC, segmenter="2-grams", dictionary=tmp_path / "words")
