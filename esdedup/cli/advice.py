"""Advice on errors for the command line; the library's own messages name no options."""

import shlex
from collections.abc import Iterator

from esdedup import errors
from esdedup.fields import Fields

_ADVICE: dict[type[errors.EsdedupError], str] = {
    errors.ForestAhead: "`esdedup verify --repair`, with all indices of the forest, sets its time back",
    errors.ForestDamaged: (
        "`esdedup verify --repair` lets it begin anew; `esdedup learn --index INDEX` then teaches it from "
        "stored articles"
    ),
    errors.ForestBusy: "--wait SECONDS waits until the forest is released; --forest NAME uses another one",
    errors.ForestExists: (
        "--replace deletes it, --replace-larger even a larger one; --forest NAME makes another"
    ),
    errors.ForestFull: "`esdedup rebuild --index INDEX --replace --lookup search` lets it be searched",
    errors.ForestIncomplete: "`esdedup rebuild`, with all indices of the forest, completes it",
    errors.ForestMismatch: "--forest NAME uses another forest",
    errors.ForestMissing: "--forest NAME uses another forest; `esdedup rebuild` makes one from articles",
    errors.ServerUnavailable: "--url names another server; `esdedup node start` starts one on this machine",
}


def advice(error: errors.EsdedupError) -> Iterator[str]:
    """Yield lines that name the options and commands that help with an error."""
    if isinstance(error, errors.ForestMismatch) and isinstance(error.supported, str):
        yield "--profile, and options that change one, name the profile of a forest"
    if type(error) in _ADVICE:
        yield _ADVICE[type(error)]
    elif isinstance(error, errors.FieldsNotFound):
        yield from _field_options(error)
    elif isinstance(error, errors.IndexNotReady):
        yield from _set_up(error)


def _field_options(error: errors.FieldsNotFound) -> Iterator[str]:
    """Yield the options that name the fields which an article probably has."""
    names = dict.fromkeys(error.missing, "NAME") | error.likely
    options = {role: f"--{role}-field {shlex.quote(name)}" for role, name in names.items()}
    if error.index is None:
        needed = [options.pop(role) for role in error.missing]
        yield f"name the fields: {' '.join(needed)}"
        if options:
            yield f"where a command takes them, also: {' '.join(options.values())}"
        return
    id_option = options.pop("id", None)
    if options:
        yield f"`esdedup setup {error.index} {' '.join(options.values())}` makes the index keep these names"
    if id_option is not None:
        yield f"name the field with the id here: {id_option}"


def _set_up(error: errors.IndexNotReady) -> Iterator[str]:
    index, missing = error.index, error.missing_fields
    if missing and not any(name.endswith(".root") for name in missing):
        yield f"`esdedup migrate {index} --to FOREST` takes over what an earlier version has fed"
    elif index is not None and not set(index) & set("*,") and (error.status == 404 or missing):
        names = {field.rpartition(".")[0] for field in missing} - {Fields.dedup}
        option = "".join(f" --dedup-field {name}" for name in names)
        yield f"`esdedup setup {index}{option}` adds the fields, and creates the index if it does not exist"
        if missing:
            yield f"`esdedup adopt {index}` gives roots to the articles that it has already"
