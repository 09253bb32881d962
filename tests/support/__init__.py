"""Helpers that several test files share: generators, models, and processes that can be killed."""
