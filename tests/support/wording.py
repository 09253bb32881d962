"""Distinct invented words and figures."""

import random


def words(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=10)) for _ in range(count)]


def numbers(count: int, seed: int) -> list[str]:
    return [str(random.Random(f"{seed} {place}").randrange(10**9, 10**10)) for place in range(count)]
