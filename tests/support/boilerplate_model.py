"""Reference model of boilerplate learning: simple, exhaustive, one page at a time."""

import dataclasses

from esdedup.text.hashing import murmur64

ENOUGH_LETTERS = 100
AMPLE_LETTERS = 200
LEAST_SHARE = 0.4
LEAST_ROWS, TABLE_SHARE = 2, 0.5
OWN, TOGETHER, MOSTLY_NEW, SCATTERED = 0.1, 0.5, 0.6, 0.15
FEW, YOUNG, LONGEST_NOTICE, LONGEST_STRETCH = 3, 64, 700, 1500
HASHES = 2**64


@dataclasses.dataclass(frozen=True)
class ModelPassage:
    hash: int
    letters: int
    is_prose: bool
    has_figures: bool = False


@dataclasses.dataclass
class ModelPage:
    number: int
    marks: list[int]
    passages: list[int]
    site: str | None
    article: int
    # The passages to learn: hash, number of letters (0 for an omitted passage), and whether it was seen
    # before.
    taught: list[tuple[int, int, bool]]
    # Numbers of letters: in new passages, in new passages that follow another new passage, in all passages,
    # and in long stretches of passages that were seen before.
    new: tuple[int, int, int, int] = (0, 0, 0, 0)
    number_at_site: int = 0

    @property
    def bit(self) -> int:
        return 1 << self.article % 32

    @property
    def is_mostly_new(self) -> bool:
        new, _, letters, _ = self.new
        return new > 0 and new >= MOSTLY_NEW * letters

    @property
    def is_own(self) -> bool:
        new, together, letters, running = self.new
        is_part = new > 0 and together >= TOGETHER * new and new >= OWN * letters
        return self.is_mostly_new or (is_part and running <= 2 * new)

    @property
    def is_version(self) -> bool:
        new, _, letters, _ = self.new
        return letters - new > max(LONGEST_NOTICE, 2 * new)

    @property
    def is_scattered(self) -> bool:
        new, _, letters, _ = self.new
        return not self.is_own and 0 < new >= SCATTERED * letters

    def is_apart(self, earlier: "ModelPage", passage: int) -> bool:
        marks = other_marks(earlier.marks, passage)
        return (
            self.is_mostly_new
            and bool(marks)
            and (self.site, self.article) != (earlier.site, earlier.article)
            and not marks & {each >> 32 for each, *_ in self.taught}
        )


@dataclasses.dataclass(frozen=True)
class SitePages:
    """The pages of one site that contain a passage."""

    first: ModelPage
    amid_own: int
    articles: int
    pages: int = 1

    @classmethod
    def of_first_page(cls, page: ModelPage) -> "SitePages":
        return cls(page, page.bit, page.bit)


# Whether a passage is declared to be boilerplate (True) or text (False), by passage and site.
ModelOverrides = dict[tuple[int, str | None], bool]


class BoilerplateModel:
    def __init__(
        self,
        *,
        block_pages: int,
        period_records: int,
        end_passages: int = 500,
        least_article_bits: int = 7,
        overrides: ModelOverrides | None = None,
    ) -> None:
        self.overrides = overrides or {}
        self.block_pages = block_pages
        self.end_passages = end_passages
        self.least_article_bits = least_article_bits
        # By site: its number of pages, and the number of the last page learned when that count last changed.
        self.sites: dict[str, tuple[int, int]] = {}
        self.period_records = period_records
        self.pages: dict[int, int] = {}
        # The latest page: by first passage (with the article), by last passage, by first passage and title.
        self.openings: dict[int | None, tuple[int, int]] = {}
        self.closings: dict[int | None, int] = {}
        self.titled: dict[tuple[int | None, str | None], int] = {}
        # By passage: a page that contains it. `rows` has the `SitePages` and contexts of passages seen again.
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
        content_hash: int,
        passages: list[ModelPassage],
        site: str | None = None,
        article: str | None = None,
        title: str | None = None,
    ) -> list[bool]:
        """Return whether each passage of a page is omitted, and learn from the page."""
        overridden = [
            self.overrides.get((each.hash, site), self.overrides.get((each.hash, None))) for each in passages
        ]
        learned = [
            self.is_learned(local_hash(each.hash, site)) if override is None else override
            for each, override in zip(passages, overridden, strict=True)
        ]
        local = [local_hash(each.hash, site) for each in passages]
        passages = [
            dataclasses.replace(
                each,
                hash=hash_at_site,
                is_prose=each.is_prose or override is False,
                has_figures=each.has_figures and override is not True,
            )
            for each, hash_at_site, override in zip(passages, local, overridden, strict=True)
        ]
        left_out, marks = self.filter(passages, learned)
        own_article = article_of(article, content_hash)
        kinds = self.kinds(local, site, own_article)
        without, own_marks = self.filter(
            passages,
            [
                is_learned or (override is None and known == "shared")
                for is_learned, override, known in zip(learned, overridden, kinds, strict=True)
            ],
        )
        of = list(zip(passages, left_out, without, kinds, strict=True))
        shared = sum(each.letters for each, is_out, _, known in of if known == "shared" and not is_out)
        own = sum(each.letters for each, _, is_out, _ in of if not is_out)
        new = sum(each.letters for each, _, is_out, known in of if known == "new" and not is_out)
        if 0 < own < shared <= max(LONGEST_NOTICE, 2 * own) and (not new or new >= MOSTLY_NEW * own):
            left_out, marks = without, own_marks
        hashes = [each.hash for each in passages]
        last = next((each for each in reversed(hashes) if not self.is_learned(each)), None)
        if site is not None:
            for at in range(self.older_items_from(hashes, left_out, last, own_article, title), len(passages)):
                left_out[at] |= overridden[at] is not False
        if passages and not self.lasts(self.pages.get(content_hash, 0)):
            self.last_number += 1
            self.pages[content_hash] = self.last_number
            if site is not None:
                first = next((each for each, out in zip(hashes, left_out, strict=True) if not out), None)
                self.openings[first] = self.last_number, own_article
                self.closings[last] = self.last_number
                self.titled[first, title] = self.last_number
            taught = [
                (each.hash, 0 if is_left_out else each.letters, self.is_seen(each.hash))
                for at, (each, is_left_out) in enumerate(zip(passages, left_out, strict=True))
                if self.learned.get(each.hash, 0) < self.present_from
                and not self.end_passages <= at < len(passages) - self.end_passages
            ]
            if len(hashes) > 2 * self.end_passages:
                hashes = hashes[: self.end_passages] + hashes[-self.end_passages :]
            self.block.append(ModelPage(self.last_number, marks, hashes, site, own_article, taught))
            if len(self.block) == self.block_pages:
                self.learn()
        return left_out

    def filter(self, passages: list[ModelPassage], learned: list[bool]) -> tuple[list[bool], list[int]]:
        """Return whether each passage is omitted, given the learned passages; and return the page's marks."""
        lists = [
            not each.is_prose
            and any(
                0 <= near < len(passages) and not passages[near].is_prose for near in (place - 1, place + 1)
            )
            for place, each in enumerate(passages)
        ]
        kept = [each for each, is_learned in zip(passages, learned, strict=True) if not is_learned]
        rest = sum(each.letters for each in kept)
        prose = sum(each.letters for each in kept if each.is_prose)
        others = sum(
            each.letters
            for each, is_learned, is_list in zip(passages, learned, lists, strict=True)
            if not is_learned and not is_list
        )
        has_ample = prose >= max(AMPLE_LETTERS, LEAST_SHARE * rest)
        has_enough = others >= max(ENOUGH_LETTERS, LEAST_SHARE * rest)
        rows = [each for each in passages if each.has_figures]
        is_table = (
            not (has_ample or has_enough)
            and len(rows) >= LEAST_ROWS
            and sum(each.letters for each in rows) >= TABLE_SHARE * sum(each.letters for each in passages)
        )
        learned = [
            is_learned and not (is_table and each.has_figures)
            for each, is_learned in zip(passages, learned, strict=True)
        ]
        marks: list[int] = []
        for place in sorted(range(len(passages)), key=lambda at: (lists[at], -passages[at].letters)):
            if not learned[place] and passages[place].hash >> 32 not in marks:
                marks.append(passages[place].hash >> 32)
        marks = marks[:3]
        if has_ample:
            # The last passage may be a truncated sentence, so it is kept unless it is in a list.
            listed = [
                not each.is_prose and (is_list or place + 1 < len(passages))
                for place, (each, is_list) in enumerate(zip(passages, lists, strict=True))
            ]
        elif has_enough:
            listed = lists
        else:
            listed = [
                is_list and not (is_table and each.has_figures) and self.was_elsewhere(each.hash, marks)
                for each, is_list in zip(passages, lists, strict=True)
            ]
        return [a or b for a, b in zip(learned, listed, strict=True)], marks

    def kinds(self, hashes: list[int], site: str | None, article: int) -> list[str]:
        """Classify each passage of a page as "new" (to a young site), "seen" or "shared"."""
        waiting = [page for page in self.block if page.site == site]
        count = 0 if site is None else self.pages_of(site)
        if site is None or count >= YOUNG or count + len(waiting) < 2:
            return ["seen"] * len(hashes)
        for number, page in enumerate(waiting, count + 1):
            page.number_at_site = number
        found = []
        for each in hashes:
            counted, _ = self.known(each)
            seen_on = [page for page in waiting if each in [passage for passage, *_ in page.taught]]
            if self.is_learned(each) or not (counted or seen_on):
                found.append("seen" if self.is_learned(each) else "new")
                continue
            counted = count_pages(counted, seen_on)
            articles = counted.articles | 1 << article % 32
            span = count + len(waiting) + 1 - counted.first.number_at_site + 1
            is_shared = articles.bit_count() >= FEW and (counted.pages + 1) * 2 >= span
            found.append("shared" if is_shared else "seen")
        return found

    def older_items_from(
        self, hashes: list[int], left_out: list[bool], last: int | None, article: int, title: str | None
    ) -> int:
        """Return the index at which the older articles of a list begin, or the number of passages."""
        waiting = {passage for page in self.block for passage, _, _ in page.taught}
        kept = [at for at, out in enumerate(left_out) if not out]
        begun = [at for at in kept if self.lasts(self.openings.get(hashes[at], (0, 0))[0])]
        older = [at for at in begun if self.openings[hashes[at]][1] != article]
        if last is None or self.lasts(self.closings.get(last, 0)) or not older or kept[0] in begun:
            return len(hashes)
        if title is not None and self.lasts(self.titled.get((hashes[older[0]], title), 0)):
            return len(hashes)
        are_seen = all(self.is_seen(each) or each in waiting for each in (last, *hashes[older[0] :]))
        return older[0] if are_seen else len(hashes)

    def learn(self) -> None:
        block, self.block = self.block, []
        last = self.last_number
        self.records += 4 * len(block)
        self.seen |= {page.number: page for page in block}
        in_block: set[int] = set()
        for page in block:
            own = together = 0
            follows = False
            stretches = [0]
            for passage, letters, was_seen in page.taught:
                is_new = not was_seen and passage not in in_block
                in_block.add(passage)
                if letters and not is_new:
                    stretches[-1] += letters
                else:
                    stretches.append(0)
                if letters:
                    own += letters * is_new
                    together += letters * (is_new and follows)
                    follows = is_new
            running = sum(each for each in stretches if each > LONGEST_STRETCH)
            page.new = own, together, sum(letters for _, letters, _ in page.taught), running
            if page.site:
                page.number_at_site = self.pages_of(page.site) + 1
                self.sites[page.site] = page.number_at_site, last
        for passage in {each for page in block for each in page.passages}:
            if self.is_learned(passage):
                if self.learned[passage] < self.present_from:
                    self.learned[passage] = last
                    self.records += 1
                continue
            site_pages, before = self.known(passage)
            seen_on = [page for page in block if passage in page.passages]
            counted = count_pages(site_pages, seen_on)
            is_more = site_pages is not None or counted.pages > 1
            has_grown = is_more and counted != site_pages
            contexts, last_added = list(before), 0
            for page in seen_on:
                if page.is_scattered and contexts:
                    contexts.remove(max(contexts))
                others = other_marks(page.marks, passage) if page.is_own else None
                if not others or any(is_same(page, self.seen[each], passage) for each in contexts):
                    continue
                last_added = page.number
                if len(contexts) == 4:
                    self.learned[passage] = page.number
                    break
                contexts.append(page.number)
            earlier = self.seen[self.values[passage]] if site_pages else seen_on[0]
            is_apart = any(page.is_apart(earlier, passage) for page in seen_on)
            if self.is_of_site(counted, is_apart=is_apart) and not self.is_learned(passage):
                self.learned[passage] = last_added or last
            is_learned = self.is_learned(passage)
            self.records += is_learned or last_added > 0 or has_grown or site_pages is None
            if is_learned:
                self.values[passage] = self.learned[passage]
                continue
            if last_added:
                self.values[passage] = last_added
            elif site_pages is None:
                self.values[passage] = seen_on[0].number
            if has_grown or (last_added and len(contexts) > 1):
                self.rows[passage] = counted, contexts
        if self.records >= self.period_records:
            self.records = 0
            self.former_from, self.present_from = self.present_from, last + 1

    def known(self, passage: int) -> tuple[SitePages | None, list[int]]:
        """Return the pages of the site that contain a passage, and the passage's contexts."""
        value = self.values.get(passage, 0)
        if not self.lasts(value):
            return None, []
        first = self.seen[value]
        site_pages, contexts = self.rows.get(passage, (SitePages.of_first_page(first), []))
        contexts = [each for each in contexts if self.lasts(each)] or [value]
        if not self.lasts(site_pages.first.number):
            site_pages = SitePages.of_first_page(first)
        return site_pages, [each for each in contexts if other_marks(self.seen[each].marks, passage)]

    def is_of_site(self, counted: SitePages, *, is_apart: bool) -> bool:
        """Return whether a passage belongs to its site, not to an article."""
        site = counted.first.site
        if not site:
            return False
        span = self.pages_of(site) - counted.first.number_at_site + 1
        own = counted.amid_own.bit_count()
        if (own >= FEW or is_apart) and counted.pages * 2 >= span:
            return True
        if own >= self.least_article_bits and counted.pages * 10 >= span:
            return True
        return counted.articles.bit_count() >= 3 * self.least_article_bits and counted.pages * 2 >= span

    def pages_of(self, site: str) -> int:
        count, last = self.sites.get(site, (0, 0))
        return count if self.lasts(last) else 0

    def is_seen(self, passage: int) -> bool:
        return self.is_learned(passage) or self.lasts(self.values.get(passage, 0))

    def was_elsewhere(self, passage: int, marks: list[int]) -> bool:
        own = other_marks(marks, passage)
        return bool(own) and any(
            not own & other_marks(self.seen[each].marks, passage) for each in self.known(passage)[1]
        )

    def is_learned(self, passage: int) -> bool:
        return self.lasts(self.learned.get(passage, 0))

    def lasts(self, page: int) -> bool:
        return page >= self.former_from


def article_of(article_id: str | None, content_hash: int) -> int:
    """Return the number of an article; a page without an article id is a separate article."""
    return max(1, content_hash % 2**32 if article_id is None else murmur64(article_id.encode()) >> 32)


def count_pages(counted: SitePages | None, seen_on: list[ModelPage]) -> SitePages:
    """Add the pages of a block that contain a passage to the counts for the passage."""
    if counted is None:
        counted, seen_on = SitePages.of_first_page(seen_on[0]), seen_on[1:]
    for page in seen_on:
        counted = dataclasses.replace(
            counted,
            amid_own=counted.amid_own | (page.bit if page.is_own else 0),
            articles=counted.articles | (0 if page.is_version else page.bit),
            pages=counted.pages + 1,
        )
    return counted


def local_hash(passage: int, site: str | None) -> int:
    """Return the hash of a passage at a site; passages of an unknown site keep the plain hash."""
    if site is None:
        return passage
    value = passage ^ max(1, murmur64(site.encode()) >> 32) * 0x9E3779B97F4A7C15 % HASHES
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor % HASHES
    return value ^ value >> 33


def is_same(one: ModelPage, other: ModelPage, passage: int) -> bool:
    """Return whether two pages are one context: they share the article, or a mark of another passage."""
    if (one.site, one.article) == (other.site, other.article):
        return True
    return bool(other_marks(one.marks, passage) & other_marks(other.marks, passage))


def other_marks(marks: list[int], passage: int) -> set[int]:
    return set([mark for mark in marks if mark != passage >> 32][:2])
