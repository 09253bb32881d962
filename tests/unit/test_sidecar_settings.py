"""Settings of the sidecar: precedence, errors, and their use in documentation and deployment files."""

import itertools
import re
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import ApiError, Elasticsearch, helpers
from esdedup.ingest.settings import as_toml, settings_of
from pydantic import ByteSize, TypeAdapter

from docs.made_from_code import DOCUMENT, made
from esdedup import CLASSIC, KEYWORDS
from esdedup.errors import SettingError
from esdedup.fields import Fields, fields_given
from esdedup.fingerprint.profile import DEFAULT
from esdedup.sidecar.app import assemble
from esdedup.sidecar.settings import SECRETS, Settings, load
from esdedup.text.hashing import TOKEN_HASHES
from esdedup.text.segmenters import Dictionary, Jieba, UnicodeWords
from esdedup.text.weights import StopWords, Tf
from tests.support.wire import ScriptedServer, answer

SECRET = "a-secret-that-nobody-may-see"
Load = Callable[..., Settings]


def secrets(settings: Settings) -> dict[str, str | None]:
    """Return the unmasked secrets by name."""
    given = {name: getattr(settings, name) for name in SECRETS}
    return {name: value and value.get_secret_value() for name, value in given.items()}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """Return a function that loads settings only from options, variables and the contents of a file."""

    def loaded(
        options: dict[str, Any] | None = None, *, file: str | None = None, **variables: str
    ) -> Settings:
        given = dict(options or {})
        if file is not None:
            path = tmp_path / "sidecar.toml"
            path.write_text(file, "utf-8")
            given["config"] = str(path)
        monkeypatch.setattr("os.environ", variables)
        return load(given)

    return loaded


def test_options_override_variables_which_override_the_file(loaded: Load) -> None:
    file = "port = 1\nworkers = 2\nbatch_size = 3\n"
    settings = loaded({"port": "7"}, file=file, ESDEDUP_SIDECAR_PORT="8", ESDEDUP_SIDECAR_WORKERS="9")
    assert (settings.port, settings.workers, settings.batch_size) == (7, 9, 3)
    assert (settings.queue_articles, settings.host) == (20_000, "127.0.0.1")


def test_sidecar_variables_override_those_of_other_commands(loaded: Load) -> None:
    others = {"ES_URL": "http://third:9200", "ELASTICSEARCH_URL": "http://second:9200"}
    assert loaded(file='url = "http://fourth:9200"', **others).url == "http://second:9200"
    assert loaded(ESDEDUP_SIDECAR_URL="http://first:9200", **others).url == "http://first:9200"
    assert secrets(loaded(ES_API_KEY=SECRET))["api_key"] == SECRET


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "http://127.0.0.1:9500"),
        ({"host": "::1"}, "http://[::1]:9500"),
        ({"host": "b.example", "insecure": True}, "http://b.example:9500"),
        ({"host": "0.0.0.0", "insecure": True}, None),
        ({"host": "::", "insecure": True, "advertise": "https://b.example/es/"}, "https://b.example/es"),
    ],
)
def test_the_public_address_defaults_to_the_listening_address(
    loaded: Load, options: dict[str, Any], address: str | None
) -> None:
    settings = loaded(options)
    assert settings.reached_at(9500) == address
    assert "b.example" not in str(address) or "b.example" in settings.hosts


def test_an_empty_variable_is_ignored(loaded: Load) -> None:
    assert loaded(file="port = 1", ESDEDUP_SIDECAR_PORT="", ES_URL="").port == 1


def test_lists_and_sizes_are_parsed(loaded: Load) -> None:
    assert loaded(ESDEDUP_SIDECAR_ALLOW_HOSTS="a.example, B.example").hosts == {
        "127.0.0.1",
        "a.example",
        "b.example",
    }
    assert loaded(file='memory_bytes = "4GiB"').memory_bytes == 4 * 2**30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"port": "70000"},
            "--port (ESDEDUP_SIDECAR_PORT) is '70000': it must be a whole number, 0 to 65,535",
        ),
        ({"batch_size": "5001"}, "1 to 5,000"),
        (
            {"resemblance": "0.39"},
            "--resemblance (ESDEDUP_SIDECAR_RESEMBLANCE) is '0.39': it must be a number, 0.4 to 0.95",
        ),
        (
            {"lease_ttl_s": "nan"},
            "--lease-ttl-s (ESDEDUP_SIDECAR_LEASE_TTL_S) is 'nan': it must be a number, 1 ",
        ),
        ({"memory_bytes": "3"}, "64MiB, 67,108,864 or more"),
        ({"log_level": "loud"}, "one of debug, info, warning, error"),
        ({"forest": "a,b"}, "is not a valid name for an index"),
        (
            {"advertise": "b:9500"},
            "--advertise (ESDEDUP_SIDECAR_ADVERTISE) is 'b:9500': it must look like https://",
        ),
        ({"advertise": "file:///etc/passwd"}, "it must look like https://sidecar-1:9500"),
        ({"advertise": "http://a/?b"}, "it must look like https://sidecar-1:9500"),
        ({"profile": "nice"}, "there are classic, keywords, verified"),
        (
            {"stop_words": "x"},
            "--stop-words (ESDEDUP_SIDECAR_STOP_WORDS) applies to the profiles classic and keywords, not to "
            "verified",
        ),
        (
            {"keywords": "9"},
            "--keywords (ESDEDUP_SIDECAR_KEYWORDS) applies to the profile keywords, not to verified",
        ),
        ({"profile": "classic", "stop_words": "/nowhere"}, "cannot read /nowhere: No such file"),
        ({"profile": "classic", "weights": "/nowhere"}, "neither tf-idf nor tf, nor a file"),
        ({"profile": "classic", "segmenter": "spaces"}, "no segmenter 'spaces'"),
        ({"profile": "classic", "token_hash": "md5"}, "no hash 'md5'"),
        ({"text_field": "a", "title_field": "a"}, "names two fields"),
        ({"most_plausible_leaves": "3"}, "a power of two"),
        ({"host": "0.0.0.0"}, "--token-file (ESDEDUP_SIDECAR_TOKEN_FILE), or allow this with --insecure ("),
        ({"host": "news.example"}, "there is no token"),
        ({"host": "::"}, "there is no token"),
        ({"tls_cert_file": "x"}, "--tls-key-file (ESDEDUP_SIDECAR_TLS_KEY_FILE) go together"),
        ({"tls_cert_file": "x", "tls_key_file": "y"}, "_TLS_CERT_FILE): there is no file x"),
        ({"token": "a" * 16, "token_file": "x"}, "ESDEDUP_SIDECAR_TOKEN and --token-file ("),
        (
            {"token_file": "/nowhere"},
            "--token-file (ESDEDUP_SIDECAR_TOKEN_FILE): cannot read /nowhere: No such file",
        ),
        ({"token_file": "/dev/null"}, "is empty"),
        ({"user": "x"}, "give a user and a password"),
        ({"api_key": "x", "user": "x", "password": "x"}, "give a user or a key"),
        ({"pages": True}, "name the index that the pages show"),
        ({"max_body_bytes": "1GB"}, "it must be at least --max-body-bytes"),
        ({"url": "localhost:9200"}, "an address must look like https://localhost:9200"),
        ({"url": f"http://a:{SECRET}@x:1,http://b:{SECRET}@y:1"}, "the addresses name several users"),
        ({"url": f"http://a:{SECRET}@[x"}, "an address must look like https://localhost:9200"),
        ({"url": f"http://a:{SECRET}@x\u2100y"}, "an address must look like https://localhost:9200"),
        ({"config": "/nowhere"}, "--config (ESDEDUP_SIDECAR_CONFIG): there is no file /nowhere"),
    ],
)
def test_a_refused_setting_names_option_variable_and_remedy(
    loaded: Load, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError) as refused:
        loaded(options)
    assert message in str(refused.value)
    assert SECRET not in str(refused.value)


def test_all_errors_are_reported_together(loaded: Load) -> None:
    with pytest.raises(SettingError, match=r"--workers[^\n]*\n--port"):
        loaded({"port": "x", "workers": "0"})


@pytest.mark.parametrize("token", ["short", "with a space in it", "\u4e2d" * 20])
def test_a_bad_token_is_refused_and_not_shown(loaded: Load, token: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token, "utf-8")
    for given in ({"token": token}, {"token_file": str(path)}):
        with pytest.raises(SettingError, match="16 or more visible ASCII characters") as refused:
            loaded(given)
        assert token not in str(refused.value)


def test_unknown_names_are_refused_with_a_suggestion(loaded: Load) -> None:
    with pytest.raises(
        SettingError, match="no setting ESDEDUP_SIDECAR_PROT; did you mean ESDEDUP_SIDECAR_PORT"
    ):
        loaded(ESDEDUP_SIDECAR_PROT="1")
    with pytest.raises(SettingError, match="has 'worker', which is not a setting; did you mean workers"):
        loaded(file="worker = 1")
    with pytest.raises(SettingError, match=r"is not TOML: .*line 1"):
        loaded(file="port: 1")
    with pytest.raises(SettingError, match="'port' in the settings file, is 'x': it must be a whole number"):
        loaded(file='port = "x"')
    with pytest.raises(SettingError, match="'token_file' in the settings file, is 5: it must be a file"):
        loaded(file="token_file = 5")


def test_a_file_in_another_encoding_is_refused(loaded: Load, tmp_path: Path) -> None:
    (tmp_path / "sidecar.toml").write_bytes("forest = 'größe'".encode("latin-1"))
    with pytest.raises(SettingError, match=r"the file cannot be read, or is not TOML: .*utf-8"):
        loaded({"config": str(tmp_path / "sidecar.toml")})


def test_a_file_nested_too_deeply_is_refused(loaded: Load) -> None:
    with pytest.raises(SettingError, match="is not TOML: maximum recursion depth"):
        loaded(file=f"port = {'[' * 50_000}{']' * 50_000}")


def test_variables_set_by_kubernetes_are_explained(loaded: Load) -> None:
    with pytest.raises(SettingError, match="enableServiceLinks: false"):
        loaded(ESDEDUP_SIDECAR_PORT="tcp://10.0.0.1:9500")


def test_passwords_are_removed_from_addresses(loaded: Load) -> None:
    settings = loaded({"url": f"https://elastic:{SECRET}%40@es1:9200, https://es2:9200"})
    assert settings.urls == ("https://es1:9200", "https://es2:9200")
    assert (settings.user, secrets(settings)["password"]) == ("elastic", f"{SECRET}@")
    assert SECRET not in as_toml(settings)
    # The address comes from the variable that all commands share, the key from the sidecar's own option.
    settings = loaded({"api_key": "k"}, ES_URL=f"https://elastic:{SECRET}@es1:9200")
    assert (settings.user, secrets(settings)) == (None, {"token": None, "password": None, "api_key": "k"})


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("", None),
    ],
)
def test_loopback_addresses_are_recognised(loaded: Load, host: str, is_loopback: bool | None) -> None:
    if is_loopback is None:
        with pytest.raises(SettingError):
            loaded({"host": host, "insecure": True})
    else:
        assert loaded({"host": host, "insecure": True}).is_loopback is is_loopback


def test_printed_settings_can_be_read_back_without_secrets(loaded: Load, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{SECRET}\n")
    secret = {"password": SECRET, "token": SECRET}
    options = {
        "url": "http://x:1,http://y:2",
        "user": "a\x7f\"b'\u4e2d",
        "allow_hosts": ["a", "b"],
        "retention_days": "0.5",
        "insecure": True,
    }
    settings = loaded(options | secret)
    printed = as_toml(settings)
    assert SECRET not in printed
    assert SECRET not in repr(settings)
    assert '# password = "**********"\n' in printed
    again = loaded(secret, file=printed)
    assert again.model_copy(update={"config": None}) == settings


def test_settings_become_arguments_of_the_library(loaded: Load, tmp_path: Path) -> None:
    assert fields_given(loaded()) is None
    assert fields_given(loaded({"text_field": "body"})) == Fields(text="body")
    assert loaded().fingerprint_profile == DEFAULT
    assert loaded({"max_distance_bits": 0}).fingerprint_profile == DEFAULT.with_changes(max_distance_bits=0)
    assert loaded({"resemblance": 0.8}).fingerprint_profile == DEFAULT.with_changes(resemblance=0.8)
    assert loaded({"keep_boilerplate": True}).fingerprint_profile.keep_boilerplate
    nine = loaded({"profile": "keywords", "keywords": 9}).fingerprint_profile
    assert nine == KEYWORDS.with_changes(keyword_count=9)
    (tmp_path / "stop.txt").write_text("the\n")
    words = {
        "segmenter": "words",
        "weights": "tf",
        "token_hash": "crc32",
        "zero_bit": 1,
        "stop_words": str(tmp_path / "stop.txt"),
    }
    assert loaded({"profile": "classic", **words}).fingerprint_profile.label == (
        CLASSIC.with_changes(
            segmenter=UnicodeWords(),
            weighting=StopWords(["the"], Tf()),
            token_hash=TOKEN_HASHES["crc32"],
            zero_bit=1,
        ).label
    )
    (tmp_path / "words.txt").write_text("long-term\n")
    settings = loaded({"profile": "keywords", "dictionary": str(tmp_path / "words.txt")})
    (tmp_path / "words.txt").write_text("short-term\n")
    # Later changes to the file have no effect.
    assert settings.fingerprint_profile.label == (
        KEYWORDS.with_changes(segmenter=Jieba(Dictionary.of_words(["long-term"]))).label
    )
    (tmp_path / "token").write_text(f"{SECRET}\n")
    settings = loaded({"token_file": str(tmp_path / "token")})
    assert secrets(settings)["token"] == SECRET
    assert SECRET not in as_toml(settings) + repr(settings)


def test_every_setting_has_a_description_and_a_unit() -> None:
    groups = [group for group, _ in itertools.groupby(settings_of(Settings), lambda each: each.group)]
    assert len(groups) == len(set(groups)) == 9
    for setting in settings_of(Settings):
        assert setting.description.endswith(".")
        assert setting.allowed
        # The resemblance is a ratio, which has no unit.
        if setting.kind is float and setting.name != "resemblance":
            assert setting.name.endswith(("_s", "_days"))


def test_the_help_names_every_token_hash() -> None:
    (setting,) = (each for each in settings_of(Settings) if each.name == "token_hash")
    assert setting.description.endswith(f": {', '.join(TOKEN_HASHES)}.")
    assert setting.default == next(iter(TOKEN_HASHES))


def test_weights_without_effect_are_logged(
    loaded: Load, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "weights.json").write_text('{"long-term": 1, "plan": 1}')
    assemble(loaded({"profile": "classic", "weights": str(tmp_path / "weights.json")}), port=9500)
    assert [each.message.partition(";")[0] for each in caplog.records] == [
        "1 of 2 words with a weight have no effect: the segmenter never yields them, for example 'long-term' "
        "(as long | - | term)"
    ]


ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = (ROOT / "docker-compose.yml").read_text()
PODS = (DEPLOY / "kubernetes.yaml").read_text()
CA_CERTS = "ESDEDUP_SIDECAR_CA_CERTS"
UNIT = (DEPLOY / "esdedup-sidecar.service").read_text()
IMAGE = dict(
    re.findall(r"^ENV (ESDEDUP_SIDECAR_\w+)=(\S+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
)


def of_compose(name: str) -> dict[str, str]:
    """Return the variables of a service in `docker-compose.yml`."""
    common = dict(re.findall(r"^    (ESDEDUP_SIDECAR_\w+): \"?(.*?)\"?$", COMPOSE, re.MULTILINE))
    _, _, service = COMPOSE.partition(f"\n  {name}:\n")
    own = dict(re.findall(r"(ESDEDUP_SIDECAR_\w+): \"(.*?)\"", service.partition("ports:")[0]))
    assert own
    return IMAGE | common | own


def of_pods() -> dict[str, str]:
    own = dict(re.findall(r"\{name: (ESDEDUP_SIDECAR_\w+), value: \"?(.*?)\"?\}", PODS))
    return IMAGE | {name: value.replace("$(POD_IP)", "10.1.2.3") for name, value in own.items()}


def of_unit() -> dict[str, str]:
    (line,) = re.findall(r"^Environment=(.*)$", UNIT, re.MULTILINE)
    return dict(each.split("=") for each in line.split())


Deployed = Callable[[dict[str, str]], Settings]


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, str]], Settings]:
    """Return a function that loads settings from variables, and creates the files that the variables name."""

    def deployed(variables: dict[str, str]) -> Settings:
        for name in ("token", "api-key", "ca.crt"):
            (tmp_path / name).write_text("0123456789abcdef")
        places = {"/etc/esdedup": str(tmp_path), "%d": str(tmp_path)}
        for there, here in places.items():
            variables = {name: value.replace(there, here) for name, value in variables.items()}
        monkeypatch.setattr("os.environ", variables)
        return load({})

    return deployed


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        (of_compose("sidecar-1"), {"sidecar-1"}),
        (of_compose("sidecar-2"), {"sidecar-2"}),
        (of_pods(), {"esdedup", "esdedup.default.svc.cluster.local"}),
    ],
    ids=["sidecar-1", "sidecar-2", "pods"],
)
def test_each_sidecar_is_reachable_by_name_and_address(
    deployed: Deployed,
    variables: dict[str, str],
    names: set[str],
) -> None:
    settings = deployed(variables)
    assert not settings.is_loopback
    assert settings.reached_at(settings.port) == settings.advertise
    assert settings.advertise is not None
    assert settings.advertise.endswith(":9500")
    assert settings.hosts >= names
    assert settings.insecure == (settings.token is None)


def test_pods_need_no_own_authority(deployed: Deployed) -> None:
    variables = of_pods()
    assert re.search(rf"^# .*leave out --from-file=ca.crt and.*\n# variable {CA_CERTS}:", PODS, re.MULTILINE)
    assert Path(variables.pop(CA_CERTS)).name == "ca.crt"
    assert deployed(variables).ca_certs is None


def test_compose_pages_show_the_index_of_the_feeder(
    deployed: Deployed,
) -> None:
    settings = deployed(of_compose("sidecar-1"))
    (written,) = re.findall(r'^INDEX = "(\w+)"$', (DEPLOY / "feeder.py").read_text(), re.MULTILINE)
    assert (settings.pages, settings.pages_index) == (True, written)


def test_the_systemd_unit_names_its_secrets(deployed: Deployed) -> None:
    settings = deployed(of_unit())
    assert settings.token
    assert settings.api_key


def test_shutdown_leaves_time_to_answer_accepted_requests(
    deployed: Deployed,
) -> None:
    (pause_s,) = map(int, re.findall(r'command: \["sleep", "(\d+)"\]', PODS))
    times = [
        (of_compose("sidecar-1"), r"stop_grace_period: (\d+)s", COMPOSE, 0),
        (of_pods(), r"terminationGracePeriodSeconds: (\d+)", PODS, pause_s),
        (of_unit(), r"TimeoutStopSec=(\d+)", UNIT, 0),
    ]
    for variables, pattern, text, before_s in times:
        (given_s,) = map(int, re.findall(pattern, text))
        assert given_s > before_s + deployed(variables).shutdown_timeout_s


def test_pods_have_memory_for_nodes_and_bodies(
    deployed: Deployed,
) -> None:
    (limit,) = re.findall(r"limits: \{memory: (\d+)Gi\}", PODS)
    settings = deployed(of_pods())
    assert settings.memory_bytes is not None
    needed = settings.memory_bytes + settings.max_bodies_bytes
    # The extra half is for the process itself and for copies of bodies while they are read.
    assert TypeAdapter(ByteSize).validate_python(f"{limit}GiB") > 1.5 * needed


ROOT_DOCUMENTS = Path(__file__).parents[2]
ACTIONS = [{"_index": "news", "_source": {"text": "x"}}]


def test_documented_tables_match_the_code() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert made(text) == text, "run `python -m docs.made_from_code`"
    assert "| `esdedup_articles_total` | counter |" in text
    assert "| `port` | `--port` |" in text


def _bulk_as_documented(url: str) -> None:
    """Run the documented example of a client for two sidecars."""
    text = (ROOT_DOCUMENTS / "docs/guides/two-sidecars.md").read_text()
    (example,) = (
        each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "retry_backoff_base" in each
    )
    names = '"http://sidecar-1:9500", "http://sidecar-2:9501"'
    assert names in example
    exec(example.replace(names, repr(url)), {})


def _bulk_as_deployed(url: str) -> None:
    """Send actions with the settings of the feeder in `docker-compose.yml`."""
    feeder = runpy.run_path(str(ROOT_DOCUMENTS / "deploy/feeder.py"))
    helpers.bulk(Elasticsearch(url, **feeder["CLIENT_OPTIONS"]), ACTIONS, **feeder["BULK_OPTIONS"])


@pytest.mark.parametrize("bulk", [_bulk_as_documented, _bulk_as_deployed])
@pytest.mark.parametrize("status", [429, 502, 503])
def test_clients_wait_longer_than_a_lease(
    monkeypatch: pytest.MonkeyPatch, bulk: Callable[[str], None], status: int
) -> None:
    """The Elasticsearch client pauses if no server answers, but retries an error status immediately."""
    pauses_s: list[float] = []
    refusal = (
        f"HTTP/1.1 {status} X\r\nx-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\n"
        "content-length: 2\r\nconnection: close\r\n\r\n{}"
    )
    monkeypatch.setattr(time, "sleep", pauses_s.append)
    with ScriptedServer(answer(refusal.encode())).running() as server, pytest.raises(ApiError):
        bulk(server.url)
    assert sum(pauses_s) > 2 * Settings.model_fields["lease_ttl_s"].default
