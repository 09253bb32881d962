"""Wrapped text is cut into the sentences of the text before it was wrapped; lists are not run together."""

import textwrap

import pytest

from esdedup.text.left_out import LocatedPassages

ENGLISH = (
    "The harbour office of Northport will close its old crane in spring. It had lifted timber for "
    "ninety years, said the master of the harbour, and nobody could remember a day on which it had not. "
    "A new one comes from abroad and is to be paid for by the county."
)
SECOND = (
    'Shopkeepers near the quay fear the noise of the works. "We were asked by nobody at all," said one of '
    "them, who sells nets and lamps and has been there since the bridge was opened."
)
CHINESE = (
    "北港市政府昨日宣布，2026年春天将拆除老码头的起重机。"
    "这台设备已经运转了90年，装卸过无数木材和粮食，"
    "许多老工人对它很有感情。新的起重机将从国外购买，"
    "费用由县里承担，预计明年年底投入使用。"
)


def passages(text: str) -> list[int]:
    found: list[int] = LocatedPassages.of(text, max_length=10_000).passages.hashes.tolist()
    return found


def chunks(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def columns(text: str, width: int) -> str:
    """Wrap as a terminal does: an East Asian character takes two columns."""
    lines, used = [""], 0
    for character in text:
        needed = 2 if ord(character) > 0x2E7F else 1
        if used + needed > width:
            lines.append("")
            used = 0
        lines[-1] += character
        used += needed
    return "\n".join(lines)


@pytest.mark.parametrize("width", [40, 72, 110, 140])
@pytest.mark.parametrize("gap", ["\n", "\n\n", "\n    "])
def test_wrapped_english_has_the_passages_of_its_paragraphs(width: int, gap: str) -> None:
    wrapped = gap.join("\n".join(textwrap.wrap(each, width)) for each in (ENGLISH, SECOND))
    assert passages(wrapped) == passages(f"{ENGLISH}\n\n{SECOND}")


@pytest.mark.parametrize("wrap", [chunks, columns])
@pytest.mark.parametrize("width", [18, 24, 35])
def test_wrapped_chinese_has_the_passages_of_its_paragraph(wrap: object, width: int) -> None:
    assert callable(wrap)
    width *= 1 + (wrap is columns)
    text = CHINESE.replace("2026", "").replace("90", "")
    assert passages(wrap(text, width)) == passages(text)


def test_a_line_of_numbers_is_full_in_columns_and_in_characters() -> None:
    """A width counted in one of the two varies in the other."""
    text = CHINESE.replace("无数", "12,345,678吨")
    for wrapped in (chunks(text, 45), columns(text, 84)):
        assert len(passages(wrapped)) == len(passages(text)) == 3


@pytest.mark.parametrize(
    "lines",
    [
        # No wider than wrapped text, and none is full.
        ["Council delays the bridge again", "Crane of the harbour is taken down", "Snow", "A new mayor"],
        # Of nearly the same length, and without a full stop.
        [
            "Old crane of Northport to be closed",
            "Council to vote on the budget today",
            "Snow expected in eastern valleys",
        ],
        # Teasers that are cut.
        ["The harbour office of Northport will. Close...", "Shopkeepers near the quay fear the n. Oise..."],
        ["Home", "News", "Sport"],
        ["北港拆除老起重机引发工人不舍之情", "议会表决", "山谷大雪"],
    ],
)
def test_lists_are_not_run_together(lines: list[str]) -> None:
    found = passages("\n".join(lines))
    assert found == [each for line in lines for each in passages(line)]


@pytest.mark.parametrize(
    "text",
    [
        "Er sagte: \u201eDas war alles, was wir wissen wollten.\u201c",
        "Han sagde: \u00bbDet var alt, hvad vi ville vide.\u00ab",
        "\u201aDas war alles.\u2018",
        "That was all there was to say.[12]",
        "That was all there was to say! \U0001f600\U0001f389",
    ],
)
def test_what_follows_a_full_stop_does_not_hide_it(text: str) -> None:
    assert LocatedPassages.of(text, max_length=1_000).passages.are_prose.all()


@pytest.mark.parametrize(
    "text", ["Read more...", "Read more ... \u00bb", "Home \u00bb", "Notes [12]", "[1]", "Gallery \U0001f4f7"]
)
def test_other_lines_are_no_prose(text: str) -> None:
    found = LocatedPassages.of(f"It is said.\n{text}", max_length=1_000).passages
    assert found.are_prose.tolist() == [True, False]
