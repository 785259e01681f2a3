"""Two windows of one home refreshed at the same time, each under an embedded server of its own."""

from pathlib import Path

import pytest
from support import chaos
from support.week import PLANTED_KEY, Week, digests, ready_database, rubbish

LABELS = ("261116_261117", "261118_261119")
SETTINGS = {"collect.limit": 14, "score.segmenters": ["portable"], "annotate.shard_images": 1}


@pytest.mark.slow
def test_two_windows_at_once_in_one_home(tmp_path: Path) -> None:
    names = [f"NEST_{label}.pilot14" for label in LABELS]
    with Week(tmp_path / "plain", overrides=SETTINGS) as plain, Week(tmp_path / "week", overrides=SETTINGS) as week:
        env = {"OPENAI_API_KEY": PLANTED_KEY}
        alone = chaos.start(chaos.context(), plain.folder / "nest.toml", LABELS, env, plain.folder / "log.txt")
        ready_database(week.home, tmp_path / "cache")
        runs = [week.start("refresh", "--window", label) for label in LABELS]
        assert [run.wait(timeout=300) for run in runs] == [0, 0], (week.folder / "log.txt").read_text()
        alone.join(300)
        assert alone.exitcode == 0, (plain.folder / "log.txt").read_text()
        for name in names:
            found = digests(week.home / "snapshots" / name)
            assert "snapshot.json" in found
            assert found == digests(plain.home / "snapshots" / name)
            assert list(week.home.glob(f"reports/{name}/*/report.json"))
        assert week.paid_twice() == []
        assert rubbish(week.home) == []
        assert week.servers_left() == []
        for label in LABELS:
            assert "nothing to do" in week.nest("refresh", "--window", label).stderr
