"""What a real Prefect server is told and asked: deployments, automations, pools, missed weeks, cancelled runs."""

import json
import os
import time
from collections.abc import Callable, Iterator

import pytest
from support.server import ROOT, PrefectServer
from support.week import PLANTED_KEY, SMALL, WINDOW, Week, rubbish

pytestmark = [pytest.mark.slow, pytest.mark.system]

SETTINGS = {**SMALL, "score.segmenters": [], "flows.annotate_deployment": "annotate/gpu", "flows.annotate_wait_s": 1}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrefectServer, Week]]:
    """A server with the deployments and a week whose masks are the gpu pool's; no worker is there yet."""
    folder = tmp_path_factory.mktemp("rules")
    with Week(folder / "week", overrides=SETTINGS, latency_s=0.5) as week:
        keys = {"NEST_CONFIG": str(week.folder / "nest.toml"), "OPENAI_API_KEY": PLANTED_KEY}
        with PrefectServer(folder / "server", env=keys) as server:
            server.deploy()
            yield server, week


def _wait(condition: Callable[[], bool], *, timeout_s: float, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.5)


def test_deployments_are_what_the_file_says(place: tuple[PrefectServer, Week]) -> None:
    server, _ = place
    found = json.loads(
        server.python(
            """
rows = [
    {"name": d.name, "pool": d.work_pool_name, "queue": d.work_queue_name, "entry": d.entrypoint,
     "pull": d.pull_steps, "crons": [(s.schedule.cron, s.schedule.timezone, s.slug) for s in d.schedules]}
    for d in client.read_deployments()
]
queues = {q.name: q.priority for q in client.read_work_queues(work_pool_name="cpu")}
print(json.dumps([rows, queues]))
"""
        )
    )
    rows, queues = {row["name"]: row for row in found[0]}, found[1]
    assert set(rows) == {"six-hourly", "weekly", "backfill", "daily", "gpu", "score"}
    assert {rows[name]["pool"] for name in ("gpu", "score")} == {"gpu"}
    assert (rows["backfill"]["pool"], rows["backfill"]["queue"]) == ("cpu", "backfill")
    assert queues["backfill"] > queues["default"]  # a higher number comes later
    assert all(not row["pull"] for row in rows.values())
    assert rows["weekly"]["crons"] == [["0 6 * * 3", "UTC", "weekly"]]
    assert rows["six-hourly"]["crons"] == [["15 */6 * * *", "UTC", "six-hourly"]]


def test_the_kubernetes_pool_takes_its_template(place: tuple[PrefectServer, Week]) -> None:
    server, _ = place
    template = str(ROOT / "docker" / "kubernetes.json")
    server.prefect("work-pool", "create", "far", "--type", "kubernetes", "--base-job-template", template)
    told = json.loads(
        server.python("print(json.dumps(client.read_work_pool('far').base_job_template['variables']['properties']))")
    )
    assert told["gpus"]["default"] == 0
    assert told["volume_claim"]["default"] == "nest-home"


def test_automations_are_installed_once_and_a_silent_run_crashes(place: tuple[PrefectServer, Week]) -> None:
    server, week = place
    command = ("ops", "install-automations", "--json")

    def done(*words: str) -> set[str]:
        return {one["done"] for one in json.loads(week.nest(*command, *words, env=server.env).stdout)}

    assert done("--dry-run") == {"created"}
    assert done() == {"created"}
    assert done() == {"there already"}
    assert done("--silent-s", "60") == {"changed", "there already"}
    count = "print(len([a for a in client.read_automations() if a.name.startswith('nest: ')]))"
    assert int(server.python(count)) == 2
    # the shortest silence that the server knows, so that the test need not wait for minutes
    code = (
        "from flows.automations import install\nprint([one.done for one in install(silent_s=10)])\n"
        "from prefect import flow\nfrom prefect.client.schemas.objects import StateType\n"
        "from prefect.states import Running\nfrom prefect.events import emit_event\n"
        "deployment = client.read_deployment_by_name('refresh/backfill')\n"
        "run = client.create_flow_run_from_deployment(deployment.id, parameters={'window': '2020-W10'})\n"
        "client.set_flow_run_state(run.id, Running(), force=True)\n"
        "resource = {'prefect.resource.id': f'prefect.flow-run.{run.id}'}\n"
        "emit_event('prefect.flow-run.heartbeat', resource=resource)\n"
        "import time\ndeadline = time.monotonic() + 60\n"
        "while client.read_flow_run(run.id).state.type is not StateType.CRASHED and time.monotonic() < deadline:\n"
        "    time.sleep(0.5)\n"
        "print(client.read_flow_run(run.id).state.message)"
    )
    assert "the worker is lost" in server.python(code)


def test_without_a_server_automations_are_a_setting(place: tuple[PrefectServer, Week]) -> None:
    _, week = place
    assert "PREFECT_API_URL" in week.nest("ops", "install-automations", code=2).stderr
    dead = {"PREFECT_API_URL": "http://127.0.0.1:9/api", "PREFECT_CLIENT_MAX_RETRIES": "0"}
    assert "does not answer" in week.nest("ops", "install-automations", env=dead, code=3).stderr


def test_without_a_gpu_worker_questions_go_on_and_the_week_is_found_again(place: tuple[PrefectServer, Week]) -> None:
    server, week = place
    week.nest("harvest", env=server.env)
    done = week.nest("refresh", "--window", WINDOW, env=server.env, code=3)
    assert "no worker of 'annotate/gpu'" in done.stderr
    assert list(week.home.glob(f"windows/{WINDOW}/ask/*/manifest.json"))
    annotates = [run["state"] for run in server.runs() if run["deployment"] == "gpu"]
    assert annotates == ["CANCELLED"]
    assert server.slots_held() == 0
    code = "from flows.catchup import catch_up\nprint(json.dumps(catch_up()))"
    sent = json.loads(server.python(code).splitlines()[-1])
    assert WINDOW in sent
    assert json.loads(server.python(code).splitlines()[-1]) == []
    waiting = [run for run in server.runs() if run["deployment"] == "backfill" and run["state"] == "SCHEDULED"]
    assert {run["queue"] for run in waiting} == {"backfill"}
    assert f"refresh-{WINDOW}" in {run["name"] for run in waiting}


@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("NEST_CHAOS"), reason="part of make chaos")
def test_a_late_run_is_of_its_own_week_and_a_cancelled_one_holds_nothing(place: tuple[PrefectServer, Week]) -> None:
    """Scheduled for a Wednesday that is past: the worker that was down comes back and starts it now."""
    server, week = place
    asked = week.llm.begun
    code = """
from datetime import UTC, datetime
from prefect.states import Scheduled
deployment = client.read_deployment_by_name("refresh/weekly")
overrides = {"collect.limit": 7}
past = Scheduled(scheduled_time=datetime(2026, 11, 25, 6, tzinfo=UTC))
run = client.create_flow_run_from_deployment(deployment.id, parameters={"overrides": overrides}, state=past)
print(run.id)
"""
    name = server.python(code).strip()
    worker = server.worker("cpu", limit=1, queue="default")
    _wait(lambda: week.llm.begun > asked, timeout_s=120, what="a question")
    assert server.python(f"print(client.read_flow_run('{name}').name)").strip() == f"refresh-{WINDOW}"
    server.prefect("flow-run", "cancel", name)
    state = f"print(client.read_flow_run('{name}').state.type.value)"
    _wait(lambda: server.python(state).strip() == "CANCELLED", timeout_s=90, what="the run to be cancelled")
    assert worker.poll() is None
    assert server.slots_held() == 0
    week.nest("ask", "--window", WINDOW, "--limit", "7")
    assert week.paid_twice() == [] or week.llm.answered <= len(week.llm.seen) + 2
    assert rubbish(week.home) == []
