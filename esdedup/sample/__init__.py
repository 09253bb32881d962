"""A small corpus of our own for trying out: invented stories, reprinted by invented media with edits."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

_OUTLETS = {
    "zh": [
        "云陵晚报",
        "江城日报",
        "海津在线",
        "都市观察网",
        "南方快讯",
        "新岸新闻",
        "北郊时报",
        "每日要览",
        "山河网",
        "晨光社区",
    ],
    "en": [
        "The Callan Courier",
        "Norland Times",
        "Westhaven Post",
        "Daily Ledger",
        "Coastline News",
        "The Marlow Echo",
        "Inland Herald",
        "Morning Wire",
        "Parish & County",
        "Metro Brief",
    ],
}
_AGENCY = {"zh": "本报讯（记者 林一）", "en": "(Morning Wire) - "}
_FOOTER = {
    "zh": ["责任编辑：周五", "更多内容请关注我们的客户端。", "本文系转载，不代表本站立场。"],
    "en": [
        "Reporting by our own staff.",
        "Read more in our weekend edition.",
        "Republished with permission.",
    ],
}
_TITLE_TAIL = {
    "zh": ["（图）", "，最新消息", " 你怎么看"],
    "en": [" - in brief", ", report says", " (update)"],
}
_REPRINTS = (0, 0, 1, 2, 3, 5, 8, 12, 18, 25, 34, 45)


def articles(*, seed: int = 2026) -> Iterator[dict[str, Any]]:
    """Yield some three hundred articles in the order of their publication; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    stories = json.loads((resources.files("esdedup.sample") / "stories.json").read_text("utf-8"))
    first = datetime(2026, 9, 1, 6, 0, tzinfo=UTC)
    written = []
    for number, story in enumerate(stories):
        outlets = _OUTLETS[story["lang"]]
        appeared = first + timedelta(minutes=chance.randrange(20 * 24 * 60))
        for copy in range(1 + chance.choice(_REPRINTS)):
            moment = appeared + timedelta(minutes=int(chance.expovariate(1 / 600)) if copy else 0)
            source = (
                outlets[(number + copy) % len(outlets)] if copy < len(outlets) else chance.choice(outlets)
            )
            written.append(
                _article(story, f"sample-{number + 1:02d}-{copy + 1:02d}", moment, source, copy, chance)
            )
    yield from sorted(written, key=lambda article: (article["published_at"], article["id"]))


def _article(
    story: dict[str, Any], article_id: str, moment: datetime, source: str, copy: int, chance: random.Random
) -> dict[str, Any]:
    lang = story["lang"]
    sentences: list[str] = list(story["text"])
    title = story["title"]
    if copy:
        longest = max(sentences, key=len)
        if chance.random() < 0.3 and sentences[-1] != longest:
            sentences.pop()
        if chance.random() < 0.2 and sentences[0] != longest:
            sentences.pop(0)
        if chance.random() < 0.3:
            sentences.append(chance.choice(_FOOTER[lang]))
        if chance.random() < 0.3:
            title += chance.choice(_TITLE_TAIL[lang])
    text = ("" if lang == "zh" else " ").join(sentences)
    if chance.random() < 0.4:
        text = _AGENCY[lang] + text
    return {
        "id": article_id,
        "title": title,
        "text": text,
        "lang": lang,
        "published_at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": source,
        "url": f"https://media.example/{article_id}",
    }
