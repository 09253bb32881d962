"""Advice on errors for the command line, since the library's own messages do not mention options."""

import shlex
from collections.abc import Iterator

from esdedup import errors
from esdedup.fields import Fields

_ADVICE: dict[type[errors.EsdedupError], str] = {
    errors.ForestAhead: "`esdedup verify --repair` with all indices of the forest corrects its time",
    errors.ForestDamaged: (
        "`esdedup verify --repair` resets the damaged part; `esdedup learn --index INDEX` then learns "
        "boilerplate from stored articles"
    ),
    errors.ForestBusy: "--wait SECONDS waits until the forest is released; --forest NAME uses another forest",
    errors.ForestFull: "`esdedup rebuild --index INDEX --lookup search` needs less memory",
    errors.ForestIncomplete: "`esdedup rebuild` with all indices of the forest completes it",
    errors.ForestMismatch: "--forest NAME uses another forest",
    errors.ForestMissing: "--forest NAME uses another forest; `esdedup rebuild` creates one from articles",
    errors.ServerUnavailable: "--url names another server; `esdedup node start` starts one on this machine",
}


def advice(error: errors.EsdedupError) -> Iterator[str]:
    """Yield lines about the options and commands that resolve an error."""
    if isinstance(error, errors.ForestMismatch) and isinstance(error.supported, str):
        yield "name the forest's profile with --profile and the options that modify a profile"
    if type(error) in _ADVICE:
        yield _ADVICE[type(error)]
    elif isinstance(error, errors.FieldsNotFound):
        yield from _field_options(error)
    elif isinstance(error, errors.IndexNotReady):
        yield from _set_up(error)


def _field_options(error: errors.FieldsNotFound) -> Iterator[str]:
    """Yield options for the fields that the articles probably have."""
    names = dict.fromkeys(error.missing, "NAME") | error.likely
    options = {role: f"--{role}-field {shlex.quote(name)}" for role, name in names.items()}
    if error.index is None:
        needed = [options.pop(role) for role in error.missing]
        yield f"name the fields: {' '.join(needed)}"
        if options:
            yield f"if the command has these options, also: {' '.join(options.values())}"
        return
    id_option = options.pop("id", None)
    if options:
        yield f"`esdedup setup {error.index} {' '.join(options.values())}` stores these names in the index"
    if id_option is not None:
        yield f"name the id field in this command: {id_option}"


def _set_up(error: errors.IndexNotReady) -> Iterator[str]:
    index, missing = error.index, error.missing_fields
    if missing and not any(name.endswith(".root") for name in missing):
        yield f"`esdedup migrate {index} --to FOREST` migrates articles that an earlier version indexed"
    elif index is not None and not set(index) & set("*,") and (error.status == 404 or missing):
        names = {field.rpartition(".")[0] for field in missing} - {Fields.dedup}
        option = "".join(f" --dedup-field {name}" for name in names)
        yield f"`esdedup setup {index}{option}` adds the fields, and creates the index if it does not exist"
        if missing:
            yield f"`esdedup adopt {index}` gives roots to the articles already in it"
