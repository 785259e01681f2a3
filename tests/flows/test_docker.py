"""docker/: linters that need no daemon, and what the compose file promises: loopback, no root, health, secrets."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
DOCKERFILES = sorted(DOCKER.rglob("Dockerfile"))


def _tool(name: str) -> str:
    """A command of the development environment, also where that is not activated."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if found is None:
        pytest.skip(f"{name} is not installed: pip install 'nest-data-engine[dev]'")
    return found


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))
    return told


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: str(path.relative_to(DOCKER)))
def test_dockerfiles_pass_the_linter(path: Path) -> None:
    done = subprocess.run([_tool("hadolint"), "--no-color", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == ""


def test_the_linter_finds_something_where_there_is_something(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN cd /x && sudo pip install numpy\n")
    done = subprocess.run(
        [_tool("hadolint"), str(tmp_path / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "DL3006" in done.stdout


def test_the_compose_file_fits_its_schema(tmp_path: Path) -> None:
    words = [_tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*words, str(DOCKER / "compose.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "wrong.yaml").write_text("services:\n  a:\n    imagge: x\n")
    done = subprocess.run([*words, str(tmp_path / "wrong.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_services_are_what_is_promised(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"postgres", "server", "deploy", "worker-cpu", "worker-gpu"}
    for name, service in services.items():
        for port in service.get("ports", ()):
            assert str(port).startswith("127.0.0.1:"), f"{name} listens beyond loopback"
        if name != "deploy":
            assert service["healthcheck"]["test"], name
        if name != "postgres":
            assert service["cap_drop"] == ["ALL"], name
            assert "network_mode" not in service
            assert "privileged" not in service
    devices = services["worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices[0]["capabilities"] == ["gpu"]
    assert services["worker-gpu"]["profiles"] == ["gpu"]
    assert services["worker-cpu"]["volumes"] == services["worker-gpu"]["volumes"]
    assert services["server"]["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_secrets_come_from_the_environment_alone(compose: dict[str, Any]) -> None:
    text = (DOCKER / "compose.yaml").read_text(encoding="utf-8")
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "POSTGRES_PASSWORD"):
        values = re.findall(rf"{name}: (.*)", text)
        assert values
        assert all(value.startswith("${" + name) for value in values), values
    example = (DOCKER / "example.env").read_text(encoding="utf-8")
    assert re.findall(r"^(?:OPENAI_API_KEY|HF_TOKEN|POSTGRES_PASSWORD)=(.+)$", example, re.MULTILINE) == []
    named = set(re.findall(r"\$\{(\w+)", text))
    assert named <= set(re.findall(r"^(\w+)=", example, re.MULTILINE))


def test_images_run_as_a_user_and_install_as_the_makefile_does() -> None:
    for path in DOCKERFILES:
        text = path.read_text(encoding="utf-8")
        users = re.findall(r"^USER (\S+)", text, re.MULTILINE)
        assert users, path
        assert all(user.isdigit() and int(user) > 0 for user in users)
        assert not re.search(r"(?:KEY|TOKEN|PASSWORD)=\S", text), path
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^RUN make (\S+)", text, re.MULTILINE)
    assert targets == ["install-core", "install-gpu"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    copied = set(re.findall(r"^COPY --chown=\S+ (.+) (?:\./|\w+)$", text, re.MULTILINE))
    folders = {name for line in copied for name in line.split()}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(packages["packages"]) | {"pyproject.toml", "Makefile", "README.md", "LICENSE"} == folders


def test_ci_runs_the_images_install_steps_on_an_empty_machine() -> None:
    """What `.ci/run` makes needs the very stamps that the images' targets make."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    needs = dict(re.findall(r"^([\w-]+): (\S+)$", makefile, re.MULTILINE))
    made = re.findall(r"^make (\S+)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert {needs[target] for target in made} == {needs["install-core"], needs["install-gpu"]}
    for stamp in ("$(CORE)/.core", "$(FULL)/.full"):  # and each begins with an environment that has nothing
        (recipe,) = re.findall(rf"^{re.escape(stamp)}: pyproject.toml\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        assert "$(PYTHON) -m venv" in recipe


def test_the_cpu_image_has_no_torch() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [name for name in told["dependencies"] if re.match(r"torch|transformers|groundingdino", name)]
    assert any(name.startswith("torch") for name in told["optional-dependencies"]["gpu"])


def test_the_kubernetes_template_is_whole() -> None:
    """A variable counts only where the job's configuration names it, and a name without a variable stays as it is."""
    import jsonschema

    told = json.loads((DOCKER / "kubernetes.json").read_text(encoding="utf-8"))
    properties = told["variables"]["properties"]
    named = set(re.findall(r"\{\{ (\w+) \}\}", json.dumps(told["job_configuration"])))
    assert named == set(properties)
    jsonschema.Draft202012Validator.check_schema(told["variables"])
    for name, schema in properties.items():
        jsonschema.validate(schema["default"], schema)
        assert name in told["job_configuration"] or "title" in schema
    pod = told["job_configuration"]["job_manifest"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "{{ secret }}"}}]
    text = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    table = set(re.findall(r"`(\w+)`", "".join(line for line in text.splitlines() if line.startswith("| `"))))
    assert table - {"gpu"} <= set(properties), "docs name a variable that is not there"
