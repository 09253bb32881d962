"""What is deployed names settings, metrics and paths that exist."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from esdedup.sidecar.metrics import Metrics
from esdedup.sidecar.setting_names import settings_of
from esdedup.sidecar.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = [ROOT / "docker-compose.yml", *(path for path in DEPLOY.rglob("*") if path.is_file())]
# What Prometheus adds to the name of a histogram.
PARTS = ("_bucket", "_sum", "_count")


def expressions() -> list[str]:
    """All expressions of the dashboard and of the alerts."""
    dashboard: dict[str, Any] = json.loads((DEPLOY / "grafana/esdedup.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    alerts = re.findall(r"expr: (?:>-\n)?(.*?)\n +for:", (DEPLOY / "alerts.yml").read_text(), re.DOTALL)
    assert len(alerts) == 4
    return shown + alerts


def test_dashboard_and_alerts_use_exactly_the_metrics_that_there_are() -> None:
    described = {each.name: each for each in Metrics().described}
    histograms = {name for name, each in described.items() if each.type == "histogram"}
    series = {f"{name}{part}" for name in histograms for part in PARTS} | (described.keys() - histograms)
    used = {name for text in expressions() for name in re.findall(r"\besdedup_\w+", text)}
    assert used <= series
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in used} == set(described)


def test_labels_and_their_values_exist() -> None:
    described = {each.name: each for each in Metrics().described}
    for text in expressions():
        assert text.count("(") == text.count(")")
        for name, label, values in re.findall(r'(esdedup_\w+)\{(\w+)=~?"([^"]*)"', text):
            metric = described[re.sub("_(bucket|sum|count)$", "", name)]
            assert metric.labels == (label,)
            assert set(values.split("|")) <= set(metric.values)
        for label in re.findall(r"by \((?:le, )?(\w+)\)", text):
            assert label == "le" or label in {each for metric in described.values() for each in metric.labels}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_is_one_of_a_setting(path: Path) -> None:
    known = {variable for setting in settings_of(Settings) for variable in setting.variables}
    assert set(re.findall(r"\bESDEDUP_SIDECAR_\w+", path.read_text())) <= known


def test_the_pods_are_asked_on_paths_that_exist() -> None:
    text = (DEPLOY / "kubernetes.yaml").read_text()
    assert re.findall(r"(\w+)Probe:\n +httpGet: \{path: (\S+),", text) == [
        ("startup", "/healthz"),
        ("liveness", "/healthz"),
        ("readiness", "/readyz"),
    ]
    # A service of another name would set variables that begin as ours do.
    assert "\n  name: esdedup\n" in text
    assert "enableServiceLinks: false" in text


def test_the_tests_that_are_named_for_each_threat_exist() -> None:
    threats = (ROOT / "docs/sidecar.md").read_text().partition("\n## What it protects")[2]
    named = set(re.findall(r"`(test_\w+)`", threats))
    assert len(named) > 10
    written = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named == {name for name in named if f"def {name}(" in written}


def test_everything_that_is_mounted_exists() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    mounted = re.findall(r"- (\./[^:]+):", compose)
    assert len(mounted) == 6
    assert all((ROOT / path).is_file() for path in mounted)


def test_one_service_builds_the_image_for_all() -> None:
    """Compose refuses two builds of one name, and asks registries for an image unless it is told not to."""
    compose = (ROOT / "docker-compose.yml").read_text()
    assert len(re.findall(r"^ +build:", compose, re.MULTILINE)) == 1
    ours = re.findall(r"^ +image: esdedup\n(?: +#.*\n)*(.*)$", compose, re.MULTILINE)
    assert [each.strip() for each in ours] == ["pull_policy: never"] * 2


def test_the_unit_is_one_for_systemd(tmp_path: Path) -> None:
    text = (DEPLOY / "esdedup-sidecar.service").read_text()
    assert "ExecStart=/opt/esdedup/bin/esdedup sidecar --config " in text
    analyze = shutil.which("systemd-analyze")
    # Many containers have no systemd.
    if analyze is not None:
        installed = tmp_path / "esdedup-sidecar.service"
        installed.write_text(text.replace("/opt/esdedup/bin/esdedup", sys.executable))
        command = [analyze, "verify", "--man=no", str(installed)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
