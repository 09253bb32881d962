"""The Helm chart and the manifests of pods, rendered by Helm's engine and decoded into Kubernetes' types."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_sidecar_settings import Deployed, deployed  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/esdedup"
Rendered = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """Return a function that renders the chart with the given values, or a file of manifests."""
    program = tmp_path_factory.mktemp("chart") / "chart"
    if shutil.which("go") is None:
        pytest.skip("there is no Go")
    # Compiling Helm's engine takes minutes, unless Go has cached it; optimisations would take longer.
    build = ["go", "build", "-gcflags=all=-N -l", "-mod=readonly", "-o", str(program), "."]
    subprocess.run(build, cwd=ROOT / "tests/clients/chart", check=True, timeout=1_200)

    def render(path: Path = CHART, **values: Any) -> list[dict[str, Any]]:
        done = subprocess.run(
            [program, path, json.dumps(values)], check=False, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    return render


def one(manifests: list[dict[str, Any]], kind: str, name: str = "news") -> dict[str, Any]:
    (found,) = (each for each in manifests if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


@pytest.mark.timeout(1_500)
def test_the_chart_runs_two_sidecars_with_least_rights(rendered: Rendered) -> None:
    manifests = rendered()
    assert sorted(each["kind"] for each in manifests) == [
        *("PodDisruptionBudget", "Service", "Service", "StatefulSet"),
    ]
    pods = one(manifests, "StatefulSet")["spec"]
    spec, labels = pods["template"]["spec"], pods["template"]["metadata"]["labels"]
    (container,) = spec["containers"]
    assert pods["replicas"] == 2
    # Pods are replaced one after the other, and a new one follows the forest before it may have to take over.
    assert pods["minReadySeconds"] >= 30
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"] == "4Gi"
    probes = {
        name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")
    }
    assert set(probes.values()) == {"/healthz"}
    assert spec["terminationGracePeriodSeconds"] > 30 + 5
    # The budget, both services and the set select the same pods.
    assert pods["serviceName"] == "news-pods"
    for selector in (
        pods["selector"]["matchLabels"],
        one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        *(one(manifests, "Service", name)["spec"]["selector"] for name in ("news", "news-pods")),
    ):
        assert selects(selector, labels)
    # Secrets are mounted by reference; no manifest contains one.
    assert spec["volumes"][0]["secret"]["secretName"] == "esdedup"
    assert not any("SECRET" in each["name"] or "PASSWORD" in each["name"] for each in container["env"])
    with pytest.raises(AssertionError, match="existingSecret"):
        rendered(existingSecret="")


@pytest.mark.timeout(1_500)
def test_a_sidecar_accepts_the_settings_of_the_chart(rendered: Rendered, deployed: Deployed) -> None:  # noqa: F811
    values = {"pages": {"index": "news-*"}, "settings": {"ESDEDUP_SIDECAR_LEASE_TTL_S": 10}, "replicas": 3}
    pods = one(rendered(**values), "StatefulSet")
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    own = {
        each["name"]: each.get("value", "news-1").replace("$(POD_NAME)", "news-1")
        for each in container["env"]
    }
    settings = deployed({name: value for name, value in own.items() if name.startswith("ESDEDUP_")} | HOST)
    assert settings.advertise == "http://news-1.news-pods.search.svc:9500"
    assert (settings.pages_index, settings.lease_ttl_s) == ("news-*", 10)
    # The names by which readers and feeders reach the pods.
    assert settings.hosts >= {"news", "news.search.svc", "news-2.news-pods", "news-0.news-pods.search.svc"}


@pytest.mark.timeout(1_500)
def test_a_private_registry_and_a_public_authority_are_settings(rendered: Rendered) -> None:
    def pod(**values: Any) -> tuple[dict[str, Any], bool]:
        spec = one(rendered(**values), "StatefulSet")["spec"]["template"]["spec"]
        return spec, any(each["name"] == "ESDEDUP_SIDECAR_CA_CERTS" for each in spec["containers"][0]["env"])

    spec, has_ca = pod()
    assert (spec.get("imagePullSecrets"), has_ca) == (None, True)
    hosted = {"url": "https://search.example", "hasOwnCa": False}
    spec, has_ca = pod(imagePullSecrets=[{"name": "registry"}], elasticsearch=hosted)
    assert (spec["imagePullSecrets"], has_ca) == ([{"name": "registry"}], False)


HOST = {"ESDEDUP_SIDECAR_HOST": "0.0.0.0"}


@pytest.mark.timeout(1_500)
def test_metrics_are_scraped_with_the_token(rendered: Rendered) -> None:
    manifests = rendered(serviceMonitor={"enabled": True, "labels": {"release": "prometheus"}})
    monitor = one(manifests, "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["authorization"] == {
        "type": "Bearer",
        "credentials": {"name": "esdedup", "key": "token"},
    }
    # Each pod is scraped once.
    scraped = [
        each["metadata"]["name"]
        for each in manifests
        if each["kind"] == "Service"
        and selects(monitor["spec"]["selector"]["matchLabels"], each["metadata"]["labels"])
    ]
    assert scraped == ["news-pods"]
    ports = one(manifests, "Service", "news-pods")["spec"]["ports"]
    assert endpoint["port"] in {each["name"] for each in ports}


@pytest.mark.timeout(1_500)
def test_the_manifests_without_helm_are_valid(rendered: Rendered) -> None:
    manifests = rendered(ROOT / "deploy/kubernetes.yaml")
    assert [each["kind"] for each in manifests] == ["Service", "Deployment"]
    # Prometheus cannot send the token to pods that it finds by annotations.
    assert not re.search("prometheus.io", json.dumps(manifests))
