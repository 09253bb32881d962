"""Which settings go together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from esdedup.errors import SettingError
from esdedup.sidecar.setting_names import refusal

if TYPE_CHECKING:
    from esdedup.sidecar.settings import Settings


def contradictions(settings: "Settings") -> Iterator[str]:
    """Yield what settings contradict each other, and what to do."""

    def called(*names: str) -> str:
        return refusal(type(settings), *names)

    yield from _of_credentials(settings)
    if (settings.tls_cert_file is None) != (settings.tls_key_file is None):
        yield f"{called('tls_cert_file', 'tls_key_file')} go together: give both, or none"
    has_token = settings.token is not None or settings.token_file is not None
    if not (settings.is_loopback or settings.insecure or has_token):
        yield (
            f"{called('host')} is {settings.host!r}, which other machines reach, and there is no token: "
            f"anyone there could write articles. Name one by {called('token_file')}, or allow that with "
            f"{called('insecure')}"
        )
    if settings.most_plausible_leaves.bit_count() != 1:
        yield (
            f"{called('most_plausible_leaves')} is {settings.most_plausible_leaves}: it must be a power of "
            "two, such as 1024"
        )
    if settings.max_bodies_bytes < settings.max_body_bytes:
        yield (
            f"{called('max_bodies_bytes')} is {settings.max_bodies_bytes}: it must be at least what one body "
            f"may have, {settings.max_body_bytes} by {called('max_body_bytes')}"
        )
    if settings.pages and settings.pages_index is None:
        yield f"{called('pages', 'pages_index')} go together: name the index that the pages show"
    if settings.allow_origins and not settings.pages:
        yield f"{called('allow_origins')} concerns the pages: give {called('pages')} too, or leave it out"
    for checked in (settings.fingerprint_profile, settings.fields):
        try:
            checked()
        except SettingError as error:
            yield str(error)


def _of_credentials(settings: "Settings") -> Iterator[str]:
    def called(*names: str) -> str:
        return refusal(type(settings), *names)

    given = {
        name: getattr(settings, name) is not None or getattr(settings, f"{name}_file") is not None
        for name in ("token", "password", "api_key")
    }
    for name in given:
        if getattr(settings, name) is not None and getattr(settings, f"{name}_file") is not None:
            yield f"{called(name, f'{name}_file')} are both given: give one of them"
    if given["password"] != (settings.user is not None):
        yield f"{called('user', 'password_file')} go together: give a user and a password"
    if given["password"] and given["api_key"]:
        yield f"{called('user', 'api_key')} are both given: give a user or a key"
