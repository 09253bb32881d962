"""What pages teach, written down once more: plain, exhaustive, one page at a time."""

import dataclasses

ENOUGH_LETTERS = 100
AMPLE_LETTERS = 200


@dataclasses.dataclass(frozen=True)
class ModelPassage:
    hash: int
    letters: int
    is_prose: bool


@dataclasses.dataclass
class ModelPage:
    number: int
    marks: list[int]
    passages: list[int]
    site: str | None
    article: str | None


# The first page with a passage, the last page of its site, and how many pages count.
SitePages = tuple[ModelPage, ModelPage, int]
# By passage and site; True for boilerplate, False for text.
ModelPins = dict[tuple[int, str | None], bool]


class BoilerplateModel:
    def __init__(
        self,
        *,
        block_pages: int,
        period_records: int,
        end_passages: int = 500,
        most_site_pages: int = 7,
        pins: ModelPins | None = None,
    ) -> None:
        self.pins = pins or {}
        self.block_pages = block_pages
        self.end_passages = end_passages
        self.most_site_pages = most_site_pages
        self.period_records = period_records
        self.pages: dict[int, int] = {}
        # By passage: a page with it; and, if it was seen again, the pages of its site and its contexts.
        self.values: dict[int, int] = {}
        self.rows: dict[int, tuple[SitePages, list[int]]] = {}
        self.learned: dict[int, int] = {}
        self.seen: dict[int, ModelPage] = {}
        self.last_number = 0
        self.block: list[ModelPage] = []
        self.records = 0
        self.present_from = self.former_from = 1

    def see(
        self,
        page_id: int,
        passages: list[ModelPassage],
        site: str | None = None,
        article: str | None = None,
    ) -> list[bool]:
        """Return which passages of a page are left out, and learn from it."""
        pinned = [self.pins.get((each.hash, site), self.pins.get((each.hash, None))) for each in passages]
        learned = [
            self.is_learned(each.hash) if pin is None else pin
            for each, pin in zip(passages, pinned, strict=True)
        ]
        passages = [
            dataclasses.replace(each, is_prose=each.is_prose or pin is False)
            for each, pin in zip(passages, pinned, strict=True)
        ]
        lists = [
            not each.is_prose
            and any(
                0 <= near < len(passages) and not passages[near].is_prose for near in (place - 1, place + 1)
            )
            for place, each in enumerate(passages)
        ]
        marks: list[int] = []
        for place in sorted(range(len(passages)), key=lambda at: (lists[at], -passages[at].letters)):
            if not learned[place] and passages[place].hash >> 32 not in marks:
                marks.append(passages[place].hash >> 32)
        marks = marks[:3]
        kept = [each for each, is_learned in zip(passages, learned, strict=True) if not is_learned]
        if sum(each.letters for each in kept if each.is_prose) >= AMPLE_LETTERS:
            omitted = [not each.is_prose for each in passages]
        elif (
            sum(
                each.letters
                for each, is_learned, is_list in zip(passages, learned, lists, strict=True)
                if not is_learned and not is_list
            )
            >= ENOUGH_LETTERS
        ):
            omitted = lists
        else:
            omitted = [
                is_list and self.was_elsewhere(each.hash, marks)
                for each, is_list in zip(passages, lists, strict=True)
            ]
        if passages and not self.lasts(self.pages.get(page_id, 0)):
            self.last_number += 1
            self.pages[page_id] = self.last_number
            hashes = [each.hash for each in passages]
            if len(hashes) > 2 * self.end_passages:
                hashes = hashes[: self.end_passages] + hashes[-self.end_passages :]
            self.block.append(ModelPage(self.last_number, marks, hashes, site, article))
            if len(self.block) == self.block_pages:
                self.learn()
        return [a or b for a, b in zip(learned, omitted, strict=True)]

    def learn(self) -> None:
        block, self.block = self.block, []
        last = self.last_number
        self.seen |= {page.number: page for page in block}
        for passage in {each for page in block for each in page.passages}:
            if self.is_learned(passage):
                if self.learned[passage] < self.present_from:
                    self.learned[passage] = last
                    self.records += 1
                continue
            site_pages, before = self.known(passage)
            seen_on = [page for page in block if passage in page.passages]
            counted = count_pages(site_pages, seen_on)
            has_grown = counted[2] > 1 and counted != site_pages
            contexts = list(before)
            for page in seen_on:
                own = beside(page.marks, passage)
                if not own or any(own & beside(self.seen[each].marks, passage) for each in contexts):
                    continue
                if len(contexts) == 4:
                    self.learned[passage] = page.number
                    break
                contexts.append(page.number)
            if counted[2] > self.most_site_pages and not self.is_learned(passage):
                self.learned[passage] = last if contexts == before else contexts[-1]
            is_learned = self.is_learned(passage)
            self.records += is_learned or contexts != before or has_grown or site_pages is None
            if is_learned:
                self.values[passage] = self.learned[passage]
                continue
            if contexts != before:
                self.values[passage] = contexts[-1]
            elif site_pages is None:
                self.values[passage] = counted[0].number
            if has_grown or (contexts != before and len(contexts) > 1):
                self.rows[passage] = counted, contexts
        if self.records >= self.period_records:
            self.records = 0
            self.former_from, self.present_from = self.present_from, last + 1

    def known(self, passage: int) -> tuple[SitePages | None, list[int]]:
        """Return the pages of a passage's site, and its contexts."""
        value = self.values.get(passage, 0)
        if not self.lasts(value):
            return None, []
        first = self.seen[value]
        site_pages, contexts = self.rows.get(passage, ((first, first, 1), []))
        contexts = [each for each in contexts if self.lasts(each)] or [value]
        if not self.lasts(site_pages[0].number):
            site_pages = first, first, 1
        return site_pages, [each for each in contexts if beside(self.seen[each].marks, passage)]

    def was_elsewhere(self, passage: int, marks: list[int]) -> bool:
        own = beside(marks, passage)
        return bool(own) and any(
            not own & beside(self.seen[each].marks, passage) for each in self.known(passage)[1]
        )

    def is_learned(self, passage: int) -> bool:
        return self.lasts(self.learned.get(passage, 0))

    def lasts(self, page: int) -> bool:
        return page >= self.former_from


def count_pages(counted: SitePages | None, seen_on: list[ModelPage]) -> SitePages:
    first, last, count = counted or (seen_on[0], seen_on[0], 1)
    for page in seen_on:
        if page.site and page.site == first.site and page.article and page.article != first.article:
            count += page.article != last.article
            last = page
    return first, last, count


def beside(marks: list[int], passage: int) -> set[int]:
    return set([mark for mark in marks if mark != passage >> 32][:2])
