"""What a real Prefect server is told and asked: deployments, automations, pools, missed weeks, cancelled runs."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from support.server import ROOT, PrefectServer, wait_for
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
            assert server.pause_schedules() == 3
            yield server, week


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


def test_automations_are_installed_once(place: tuple[PrefectServer, Week]) -> None:
    server, week = place
    command = ("ops", "install-automations", "--json")

    def done(*words: str) -> set[str]:
        return {one["done"] for one in json.loads(week.nest(*command, *words, env=server.env).stdout)}

    assert done("--dry-run") == {"created"}
    assert done() == {"created"}
    assert done() == {"there already"}
    assert done("--silent-s", "60") == {"changed", "there already"}
    assert done("--silent-s", "60", "--late-s", "60") == {"there already", "changed"}
    assert done("--silent-s", "60", "--late-s", "60") == {"there already"}
    count = "print(len([a for a in client.read_automations() if a.name.startswith('nest: ')]))"
    assert int(server.python(count)) == 2


def test_a_silent_run_crashes_and_one_that_nobody_takes_is_cancelled(place: tuple[PrefectServer, Week]) -> None:
    """Both rules act, with the shortest times that the server knows; then they are put back to their own. A run that
    waits for its deployment's slot is left alone."""
    server, _ = place
    deployment = server.deployment("refresh/backfill")["id"]
    install = "from flows.automations import install\nprint([one.done for one in install({})])"
    assert "['changed', 'changed']" in server.python(install.format("silent_s=10, late_s=10"))

    def made() -> str:
        told = server.api(f"deployments/{deployment}/create_flow_run", {"parameters": {"window": "2020-W10"}})
        return str(told["id"])

    waiting, untaken, silent = made(), made(), made()
    server.api(f"flow_runs/{silent}/set_state", {"state": {"type": "RUNNING"}, "force": True})
    beat = "from prefect.events import emit_event\nemit_event('prefect.flow-run.heartbeat', resource={})"
    server.python(beat.format({"prefect.resource.id": f"prefect.flow-run.{silent}"}))
    wait_for(lambda: bool(server.run(waiting)["state"]["name"] == "Late"), timeout_s=60, what="a late run")
    soon = {"scheduled_time": (datetime.now(UTC) + timedelta(hours=1)).isoformat()}
    state = {"type": "SCHEDULED", "name": "AwaitingConcurrencySlot", "state_details": soon}
    server.api(f"flow_runs/{waiting}/set_state", {"state": state, "force": True})

    def ended() -> bool:
        return (server.run(silent)["state_type"], server.run(untaken)["state_type"]) == ("CRASHED", "CANCELLED")

    wait_for(ended, timeout_s=90, what="the rules to act")
    assert "the worker is lost" in server.run(silent)["state"]["message"]
    time.sleep(3)  # its time was up when the other's was
    assert server.run(waiting)["state"]["name"] == "AwaitingConcurrencySlot"
    assert "['changed', 'changed']" in server.python(install.format(""))
    server.api(f"flow_runs/{waiting}", method="DELETE")


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


def test_a_late_run_is_of_its_own_week_and_a_cancelled_one_holds_nothing(place: tuple[PrefectServer, Week]) -> None:
    """Scheduled for a Wednesday that is past: the worker that was down comes back and starts it now."""
    server, week = place
    asked = week.llm.begun
    # more articles than another run of this week has asked about: what was paid once is not asked again
    told = {
        "parameters": {"overrides": {"collect.limit": 24}},
        "state": {"type": "SCHEDULED", "state_details": {"scheduled_time": "2026-11-25T06:00:00Z"}},
    }
    name = server.api(f"deployments/{server.deployment('refresh/weekly')['id']}/create_flow_run", told)["id"]
    worker = server.worker("cpu", limit=1, queue="default")
    wait_for(lambda: week.llm.begun > asked, timeout_s=120, what="a question")
    assert server.run(name)["name"] == f"refresh-{WINDOW}"
    server.prefect("flow-run", "cancel", name)
    wait_for(lambda: bool(server.run(name)["state_type"] == "CANCELLED"), timeout_s=90, what="the run to be cancelled")
    week.killed()  # what was on its way then may be asked for again
    assert worker.poll() is None
    assert server.slots_held() == 0
    week.nest("ask", "--window", WINDOW, "--limit", "24")
    assert week.paid_twice() == []
    assert rubbish(week.home) == []
