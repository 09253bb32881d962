"""The settings that are deployed are read without a complaint, and go together."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ByteSize, TypeAdapter

from esdedup.sidecar.loading import load
from esdedup.sidecar.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = (ROOT / "docker-compose.yml").read_text()
PODS = (DEPLOY / "kubernetes.yaml").read_text()
UNIT = (DEPLOY / "esdedup-sidecar.service").read_text()
IMAGE = dict(
    re.findall(r"^ENV (ESDEDUP_SIDECAR_\w+)=(\S+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
)


def of_compose(name: str) -> dict[str, str]:
    """Return the variables of a service."""
    common = dict(re.findall(r"^    (ESDEDUP_SIDECAR_\w+): \"?(.*?)\"?$", COMPOSE, re.MULTILINE))
    _, _, service = COMPOSE.partition(f"\n  {name}:\n")
    own = dict(re.findall(r"(ESDEDUP_SIDECAR_\w+): \"(.*?)\"", service.partition("ports:")[0]))
    assert own
    return IMAGE | common | own


def of_pods() -> dict[str, str]:
    """Return the variables of a pod."""
    own = dict(re.findall(r"\{name: (ESDEDUP_SIDECAR_\w+), value: \"?(.*?)\"?\}", PODS))
    return IMAGE | {name: value.replace("$(POD_IP)", "10.1.2.3") for name, value in own.items()}


def of_unit() -> dict[str, str]:
    """Return the variables of the unit."""
    (line,) = re.findall(r"^Environment=(.*)$", UNIT, re.MULTILINE)
    return dict(each.split("=") for each in line.split())


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, str]], Settings]:
    """Read settings from variables alone; the files that they name exist."""

    def loaded(variables: dict[str, str]) -> Settings:
        for name in ("token", "api-key", "ca.crt"):
            (tmp_path / name).write_text("0123456789abcdef")
        places = {"/etc/esdedup": str(tmp_path), "%d": str(tmp_path)}
        for there, here in places.items():
            variables = {name: value.replace(there, here) for name, value in variables.items()}
        monkeypatch.setattr("os.environ", variables)
        return load({})

    return loaded


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        (of_compose("sidecar-1"), {"sidecar-1"}),
        (of_compose("sidecar-2"), {"sidecar-2"}),
        (of_pods(), {"esdedup", "esdedup.default.svc.cluster.local"}),
    ],
    ids=["sidecar-1", "sidecar-2", "pods"],
)
def test_others_reach_each_sidecar_by_its_name_and_address(
    loaded: Callable[[dict[str, str]], Settings], variables: dict[str, str], names: set[str]
) -> None:
    settings = loaded(variables)
    assert not settings.is_loopback
    assert settings.reached_at(settings.port) == settings.advertise
    assert settings.advertise is not None
    assert settings.advertise.endswith(":9500")
    assert settings.hosts >= names
    assert settings.insecure == (settings.token is None)


def test_compose_shows_the_pages_of_what_its_feeder_writes(
    loaded: Callable[[dict[str, str]], Settings],
) -> None:
    settings = loaded(of_compose("sidecar-1"))
    (written,) = re.findall(r'^INDEX = "(\w+)"$', (DEPLOY / "feeder.py").read_text(), re.MULTILINE)
    assert (settings.pages, settings.pages_index) == (True, written)


def test_the_unit_has_its_secrets(loaded: Callable[[dict[str, str]], Settings]) -> None:
    settings = loaded(of_unit())
    assert settings.token
    assert settings.api_key


def test_what_was_accepted_has_time_to_be_answered(loaded: Callable[[dict[str, str]], Settings]) -> None:
    (pause_s,) = map(int, re.findall(r'command: \["sleep", "(\d+)"\]', PODS))
    times = [
        (of_compose("sidecar-1"), r"stop_grace_period: (\d+)s", COMPOSE, 0),
        (of_pods(), r"terminationGracePeriodSeconds: (\d+)", PODS, pause_s),
        (of_unit(), r"TimeoutStopSec=(\d+)", UNIT, 0),
    ]
    for variables, pattern, text, before_s in times:
        (given_s,) = map(int, re.findall(pattern, text))
        assert given_s > before_s + loaded(variables).shutdown_timeout_s


def test_pods_have_memory_for_nodes_and_bodies(loaded: Callable[[dict[str, str]], Settings]) -> None:
    (limit,) = re.findall(r"limits: \{memory: (\d+)Gi\}", PODS)
    settings = loaded(of_pods())
    assert settings.memory_bytes is not None
    needed = settings.memory_bytes + settings.max_bodies_bytes
    # A half more, for the process itself, and for bodies that are copied while they are read.
    assert TypeAdapter(ByteSize).validate_python(f"{limit}GiB") > 1.5 * needed
