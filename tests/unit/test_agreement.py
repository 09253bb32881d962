"""Agreement of whole texts by wording, figures and length, and the clusters that result."""

import dataclasses
import itertools
import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esdedup import VERIFIED, Profile, SettingError
from esdedup.fingerprint.agreement import Agreement, Comparison
from esdedup.fingerprint.fingerprinter import Fingerprinter
from esdedup.fingerprint.signature import BINS, SIGNATURE, WORDS
from esdedup.neighbours.explainer import Explainer
from esdedup.neighbours.explanation import Rule
from tests.support import comparison
from tests.support.assign import assigned
from tests.support.wording import numbers, words

RULES = Agreement()


def signature(
    changed: int = 0, *, units: int = 10_000, runs: int = 1_000, figures: int = 0, odd_bits: int = 0
) -> np.ndarray:
    """Make a signature; `changed` bins and `odd_bits` bits of its sketches differ from the default."""
    codes = np.ones(BINS, np.uint64)
    codes[:changed] = 2
    made = np.zeros(1, SIGNATURE)
    made["sketch"] = (codes.reshape(WORDS, -1) << np.arange(0, 64, 2, dtype=np.uint64)).sum(axis=1)
    made["units"], made["runs"] = units, runs
    made["figures"], made["figure_sketch"] = figures, (1 << odd_bits) - 1
    return made


def compare(one: np.ndarray, other: np.ndarray, rules: Agreement = RULES) -> Comparison:
    return Comparison.of(one, other, rules)


def test_shorter_texts_must_resemble_each_other_more() -> None:
    needed = [compare(signature(units=each), signature()).needed[0] for each in (0, 10, 60, 120, 600)]
    assert needed == pytest.approx([0.745, 0.745, 0.745, 0.7025, 0.6685])
    half = Agreement(resemblance=0.4)
    assert compare(signature(units=60), signature(), half).needed[0] == pytest.approx(0.55)


@pytest.mark.parametrize("units", [30, 150, 10_000])
def test_the_threshold_is_inclusive(units: int) -> None:
    found = [compare(signature(at, units=units), signature(units=units)) for at in range(BINS)]
    for each in found:
        assert each.agree[0] == (each.resemblance[0] >= each.needed[0])
        assert each.may_join[0] == (each.resemblance[0] >= each.needed[0] - RULES.root_slack)
    assert {bool(each.agree[0]) for each in found} == {True, False}


@pytest.mark.parametrize(
    ("changed", "units", "runs", "agree", "may_join", "is_part"),
    [
        # The excerpt is one half of the other text: a resemblance of 0.51.
        (83, 500, 500, True, True, True),
        (83, 40, 500, True, True, False),
        (83, 39, 500, False, False, False),
        # The other text contains 93, 91, 89, 87.8 and 87 % of the excerpt; a part needs 88 %.
        (94, 500, 500, True, True, True),
        (96, 500, 500, False, True, True),
        (99, 500, 500, False, True, True),
        (100, 500, 500, False, True, False),
        (101, 500, 500, False, False, False),
        # The excerpt is less than half as long as the other text.
        (92, 500, 470, True, True, True),
        (92, 500, 469, False, True, True),
        (104, 500, 420, False, True, True),
        (104, 500, 419, False, False, True),
        (125, 80, 300, False, False, True),
        (125, 79, 300, False, False, False),
        (125, 80, 299, False, False, False),
    ],
)
def test_thresholds_decide_whether_excerpts_agree_or_join(
    changed: int, units: int, runs: int, agree: bool, may_join: bool, is_part: bool
) -> None:
    excerpt, text = signature(changed, units=units, runs=runs), signature()
    for compared in (compare(excerpt, text), compare(text, excerpt)):
        assert compared.share[0] == runs / 1_000
        found = bool(compared.agree[0]), bool(compared.may_join[0]), bool(compared.is_part[0])
        assert found == (agree, may_join, is_part), compared


@pytest.mark.parametrize(
    ("figures", "units", "replaced", "agree"),
    [
        # If there are few figures, one may differ per 140 units (70 words).
        ((1, 1), 139, 1, False),
        ((1, 1), 140, 1, True),
        ((9, 9), 279, 2, False),
        ((9, 9), 280, 2, True),
        # 4 % of 12 figures is rounded to 0; 4 % of 13 figures is rounded to 1.
        ((12, 12), 20, 1, False),
        ((13, 13), 20, 1, True),
        ((37, 37), 20, 2, False),
        ((38, 38), 20, 2, True),
        # At most half of the figures may differ, or three if that is more.
        ((4, 4), 10_000, 3, True),
        ((4, 4), 10_000, 4, False),
        ((10, 10), 10_000, 5, True),
        ((10, 10), 10_000, 7, False),
        # At most ten may differ, however long the texts are.
        ((30, 30), 10_000, 10, True),
        ((30, 30), 10_000, 14, False),
        # Additional figures in one of the texts do not count.
        ((4, 20), 20, 0, True),
        ((12, 28), 20, 8, False),
    ],
)
def test_only_a_few_figures_may_differ(
    figures: tuple[int, int], units: int, replaced: int, agree: bool
) -> None:
    ours, theirs = figures
    # The expected number of odd bits for this number of differing figures.
    odd_bits = round(32 * (1 - (1 - 2 / 64) ** (2 * replaced + theirs - ours)))
    one = signature(units=units, figures=ours)
    other = signature(units=units, figures=theirs, odd_bits=odd_bits)
    assert {bool(compare(*pair).agree[0]) for pair in ((one, other), (other, one))} == {agree}
    # Equal wording does not compensate for different figures.
    assert compare(one, other).resemblance[0] == 1
    assert compare(one, other).may_join[0] == agree


@pytest.mark.parametrize(
    ("changed", "runs", "replaced", "agree"),
    [
        # If 6 % of the words differ, two of ten figures may differ; if 15 % do, none may.
        (20, 1_000, 2, True),
        (45, 1_000, 1, False),
        # One text has an additional line, such as a contact, so only half as many words were replaced.
        (45, 1_050, 2, False),
        (45, 1_200, 2, True),
        # If 4 % of the words differ, three of ten figures may differ; if 7 % do, two may.
        (20, 1_040, 3, True),
        (30, 1_060, 3, False),
    ],
)
def test_fewer_figures_may_differ_if_words_differ(
    changed: int, runs: int, replaced: int, agree: bool
) -> None:
    odd_bits = round(32 * (1 - (1 - 2 / 64) ** (2 * replaced)))
    one = signature(changed, figures=10)
    other = signature(runs=runs, figures=10, odd_bits=odd_bits)
    assert compare(one, other).replaced[0] == replaced
    assert bool(compare(one, other).agree[0]) == agree


FORMS = {
    "en": "{name}, {age}, of {place} has been granted a licence to draw water from the river below the mill. "
    "The licence holds for five years and may be withdrawn if the river falls below the mark on the bridge. "
    "Whoever objects writes to the office within a month, and says which part of the notice is meant. The "
    "office hears {name} and the neighbours before it decides. Fees are due before the first water is drawn, "
    "and the pump must stand on dry ground.",
    "zh": "{name}，{age}岁，住{place}，获准从水磨下游的河中取水。"
    "许可有效期为五年，如果河水低于桥上的标记，可以撤销许可。"
    "任何人如有异议，应在一个月内向本局书面提出，并说明所指的是通知的哪一部分。本局在作出决定之前听取{name}和邻居的意见。"
    "首次取水之前应缴纳费用，水泵必须放置在干燥的地面上。"
    "本局每年检查一次河岸和水泵，并把结果告知邻居。",
}
FILLED_IN = {
    "en": (["Ada Holloway", "Jorge Ibarra", "Petra Novak"], ["Eastfield", "Marrow End", "Highgate"]),
    "zh": (["欧阳明", "林建国", "马秀英"], ["东山镇", "白沙村", "石桥乡"]),
}


@pytest.mark.parametrize("language", FORMS)
def test_forms_for_different_people_differ_but_corrections_agree(language: str) -> None:
    names, places = FILLED_IN[language]
    form = FORMS[language]

    def agree(*filled_in: tuple[str, int, str]) -> bool:
        texts = [form.format(name=name, age=age, place=place) for name, age, place in filled_in]
        found = Fingerprinter(VERIFIED).fingerprint(texts).signatures
        return bool(compare(found[:1], found[1:]).agree[0])

    persons = list(zip(names, (44, 51, 63), places, strict=True))
    for one, other in itertools.permutations(persons, 2):
        assert not agree(one, other)
        # A single correction of any kind.
        assert agree(one, (other[0], one[1], one[2]))
        assert agree(one, (one[0], other[1], one[2]))
        assert agree(one, (one[0], one[1], other[2]))


NOTICES = {
    "en": "OFFICE RELEASES ITS REPORT ON {name}\n{name} died in the custody of the northern jail. {form} The"
    " full report about {name} can be read on the website of the office. Judge {judge} has been informed.",
    "zh": "关于{name}案件的通报\n近日，{name}涉嫌受贿一案由省监察委员会调查终结，移送检察机关审查起诉。{form}"
    "检察机关依法告知被告人{name}享有的诉讼权利。承办检察官{judge}介绍了案件的有关情况。",
}


@pytest.mark.parametrize("language", NOTICES)
def test_names_alone_distinguish_forms(language: str) -> None:
    """A name corrected throughout does not separate versions, even if another word also changes."""
    form = " ".join([FORMS[language].format(name="", age="", place="")] * 2)
    apart = 0
    for seed in range(40):
        if language == "en":
            first, last, other_first, other_last, judge, other_judge, corrected = words(7, seed)
            names = [f"{first} {last}", f"{other_first} {other_last}", f"{first} {corrected}"]
        else:
            *signs, judge, other_judge = random.Random(seed).sample("伟芳娜敏静丽磊洋勇艳娟涛超霞桂兰赵郭", 9)
            names = ["".join(signs[:3]), "".join(signs[3:6]), "".join([*signs[:2], signs[6]])]
        texts = [
            NOTICES[language].format(name=name, form=form, judge=officer)
            for name, officer in zip(names, [judge, other_judge, judge], strict=True)
        ]
        texts[2] = texts[2].replace("website", "portal").replace("近日", "日前")
        found = Fingerprinter(VERIFIED).fingerprint(texts).signatures
        apart += Explainer(VERIFIED).explain(*texts[:2]).rule is Rule.OTHER_NAMES
        assert compare(found[:1], found[2:]).agree[0]
    assert apart >= 30


signatures = st.builds(
    lambda codes, units, runs, figures, odd, pairs, link, article: np.array(
        [((0,) * 9, codes, odd, pairs, 0, units, runs, figures, 0, link << 38 | article << 12)], SIGNATURE
    ),
    st.lists(
        st.sampled_from([0, 1, 0x5555_5555_5555_5555, 2**64 - 1, 0xF0F0]), min_size=WORDS, max_size=WORDS
    ),
    st.sampled_from([0, 1, 39, 60, 139, 300, 65_535]),
    st.integers(0, 65_535),
    st.sampled_from([0, 1, 13, 500, 65_535]),
    *[st.integers(0, 2**64 - 1) | st.integers(0, 64).map(lambda bits: (1 << bits) - 1)] * 2,
    *[st.integers(0, 1)] * 2,
)


def damaged(runs: int) -> np.ndarray:
    return np.array([((0,) * 9, (0,) * WORDS, 0, 0, 0, 0, runs, 0, 0, 0)], SIGNATURE)


# Stored counts from 32,768 to 33,791 never occur: they would decode to numbers below 32,767.
@example(damaged(2), damaged(32_768), RULES)
@given(
    signatures, signatures, st.sampled_from([RULES, Agreement(resemblance=0.4), Agreement(resemblance=0.95)])
)
def test_comparison_is_symmetric_and_matches_the_model(
    one: np.ndarray, other: np.ndarray, rules: Agreement
) -> None:
    there, back = compare(one, other, rules), compare(other, one, rules)
    plain = comparison.compare(one, other, rules)
    for field in dataclasses.fields(Comparison):
        found = getattr(there, field.name)
        # `by_member` and `to_root` depend on which text is the later version.
        is_symmetric = field.name not in {"by_member", "to_root"}
        assert not is_symmetric or found.tobytes() == getattr(back, field.name).tobytes()
        assert found.tobytes() == getattr(plain, field.name).tobytes(), field.name
    assert there.agree <= there.may_join
    for each in (there.resemblance, there.needed, there.contained, there.share):
        assert 0 <= each[0] <= 1


def test_figures_are_counted_as_in_the_model() -> None:
    odd = np.array([(1 << bits) - 1 for bits in range(65)], np.uint64)
    found = compare(
        np.repeat(signature(), 65), np.concatenate([signature(odd_bits=bits) for bits in range(65)])
    ).replaced
    assert found.tolist() == (comparison.unshared(np.zeros(65, np.uint64), odd) / 2).tolist()
    assert found.tolist() == sorted(found)
    assert (found[:4].tolist(), found[-1]) == ([0, 0.5, 1, 1.5], 50)


@pytest.mark.parametrize(
    "wrong", [{"short_units": 0}, {"resemblance": 1.1}, {"root_slack": -0.1}, {"units_a_figure": 0}]
)
def test_invalid_thresholds_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        Agreement(**wrong)  # type: ignore[arg-type]


def roots(texts: Iterable[list[str]], profile: Profile = VERIFIED) -> list[int]:
    """Return the position of each text's root when the texts arrive in this order."""
    each = [given.root for given in assigned([" ".join(text) for text in texts], profile)]
    return [each.index(root) for root in each]


def whole_texts(one: list[str], other: list[str]) -> Comparison:
    found = Fingerprinter(VERIFIED).fingerprint([" ".join(one), " ".join(other)]).signatures
    return compare(found[:1], found[1:])


def rule(one: list[str], other: list[str], profile: Profile = VERIFIED) -> Rule:
    return Explainer(profile).explain(" ".join(one), " ".join(other)).rule


def bulletin(count: int, figures: list[str], seed: int) -> list[str]:
    """Return `count` words with the figures inserted at equal distances."""
    text = words(count, seed)
    step = count // len(figures)
    return list(
        itertools.chain.from_iterable(
            [*text[at * step : (at + 1) * step], each] for at, each in enumerate(figures)
        )
    )


ISSUE, VALUES, TWELVE = numbers(4, 100), numbers(7, 100), numbers(12, 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("count", "ours", "theirs", "expected"),
    [
        # Figures distinguish issues made from one template, even if few of the words are figures.
        (120, ISSUE, numbers(4, 200), Rule.OTHER_FIGURES),
        # Today's value replaces the oldest value; all other values occur in both texts.
        (91, VALUES, VALUES[1:] + numbers(1, 200), Rule.OTHER_FIGURES),
        (240, TWELVE, [*TWELVE[:5], "17", *TWELVE[6:]], Rule.RESEMBLE),
    ],
    ids=["next issue", "next day", "one corrected"],
)
def test_figures_separate_bulletins_but_a_correction_does_not(
    count: int, ours: list[str], theirs: list[str], expected: Rule, seed: int
) -> None:
    one, other = (bulletin(count, each, seed) for each in (ours, theirs))
    assert rule(one, other) is expected
    assert roots([one, other]) == [0, 0 if expected is Rule.RESEMBLE else 1]


@pytest.mark.parametrize("count", [4, 40, 400])
def test_the_next_issue_of_a_table_stays_separate(count: int) -> None:
    """The issues stay separate even if more figures differ than the sketch can count."""
    joined = 0
    for seed in range(20):
        ours, theirs = (bulletin(25 * count, numbers(count, issue), seed) for issue in (seed, seed + 100))
        joined += roots([ours, theirs]) == [0, 0]
    assert joined <= 1


def test_a_chain_of_versions_eventually_gets_a_new_root() -> None:
    further = 0
    for seed in range(10):
        # Each version replaces eight of 400 words: a resemblance of 0.96 to the previous version.
        story = words(700, seed)
        versions = [story[at : at + 400] for at in range(0, 200, 8)]
        found = roots(versions)
        last = max(at for at, root in enumerate(found) if root == 0)
        (shared,) = whole_texts(versions[0], versions[last]).resemblance
        assert 0.56 <= shared < 0.66
        # Without the versions in between, the first and the last version are two stories.
        further += roots([versions[0], versions[last]]) == [0, 1]
        assert max(found) > last
    assert further >= 8


@pytest.mark.parametrize("start", [0, 80, 160])
def test_an_excerpt_and_its_story_join_in_either_order(start: int) -> None:
    found = []
    for seed in range(40):
        story = words(400, seed)
        excerpt = story[start : start + 240]
        found.append(rule(story, excerpt))
        assert found[-1] is rule(excerpt, story)
        together = [0, 0 if found[-1] is Rule.EXCERPT else 1]
        assert roots([story, excerpt]) == roots([excerpt, story]) == together
    # In rare cases, the two texts share no run of words, or the estimate is too low.
    assert found.count(Rule.EXCERPT) >= 38


def test_an_excerpt_of_the_longest_text_joins_it() -> None:
    """The longest text has 150,000 units (one per Chinese character), a number that exceeds 16 bits."""
    chance = random.Random(1)
    story = "".join(chance.choices([chr(code) for code in range(0x4E00, 0x9F00)], k=150_000))
    assert rule([story], [story[10_000:100_000]]) is Rule.EXCERPT
    assert rule([story], [story[10_000:70_000]]) is Rule.PART


def test_both_halves_of_a_text_join_its_root() -> None:
    found = []
    for seed in range(20):
        story = words(400, seed)
        found.append(roots([story, story[:202], story[198:]]))
    assert found.count([0, 0, 0]) >= 16
    story = words(400, 1)
    one, other = story[:202], story[198:]
    assert roots([one, other]) == [0, 1]
    # The whole story joins one of the halves, but does not merge the two halves.
    assert roots([one, other, story])[:2] == [0, 1]
    assert rule(one, other) in {Rule.NOTHING_IN_COMMON, Rule.UNLIKE}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stories", [3, 5])
def test_a_round_up_stays_separate_from_its_stories(stories: int, seed: int) -> None:
    parts = [words(150, 10 * seed + each) for each in range(stories)]
    round_up = list(itertools.chain.from_iterable(parts))
    assert roots([round_up, *parts]) == list(range(stories + 1))
    assert roots([*parts, round_up]) == list(range(stories + 1))


def test_a_round_up_joins_at_most_two_stories() -> None:
    """Two of the stories each make up nearly half of the round-up; the third story is very short."""
    drawn = []
    for seed in range(10):
        parts = [words(count, 10 * seed + each) for each, count in enumerate((198, 198, 4))]
        found = roots([list(itertools.chain.from_iterable(parts)), *parts])
        assert roots(parts) == [0, 1, 2]
        drawn.append(found.count(0) - 1)
    assert set(drawn) <= {0, 1, 2}
    assert 2 in drawn


def with_others(text: list[str], share: float, seed: int) -> list[str]:
    """Return the text with the words after its first `share` (0 to 1) replaced."""
    kept = round(len(text) * share)
    return text[:kept] + words(len(text) - kept, seed)


@pytest.mark.parametrize(
    ("kept", "resemblance", "together"),
    [
        # Keeping 70 % of the words gives a resemblance of 0.54; keeping 95 % gives 0.9.
        (0.7, None, False),
        (0.7, 0.4, True),
        (0.95, None, True),
        (0.95, 0.95, False),
    ],
)
def test_users_can_set_the_required_resemblance(
    kept: float, resemblance: float | None, together: bool
) -> None:
    profile = VERIFIED.with_changes(resemblance=resemblance)
    text = words(400, 1)
    other = with_others(text, kept, 2)
    assert roots([text, other], profile) == [0, 0 if together else 1]
    compared = Explainer(profile).explain(" ".join(text), " ".join(other)).whole_texts
    assert compared is not None
    assert bool(compared.missed_by) is not together
    assert compared.missed_by == max(0, compared.needed - compared.resemblance)
