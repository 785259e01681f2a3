"""What a poor yield is put down to."""

from engine.core.config import Config
from engine.core.schema import FunnelStep
from flows.hints import hints


def _step(stage: str, kept: int, **rejected: int) -> FunnelStep:
    return FunnelStep(stage=stage, found=kept + sum(rejected.values()), kept=kept, rejected=rejected)


def test_a_reason_that_took_a_good_part_is_told_with_what_to_do() -> None:
    config = Config()
    (told,) = hints(config, [_step("collect", 10, outside_window=10), _step("ask", 5, private_person=2)])
    assert told.startswith("10 of 20 outside_window: ")
    assert "--window" in told
    assert hints(config, [_step("collect", 24, outside_window=10)]) == []
    assert hints(config, [_step("collect", 0)]) == []


def test_what_a_pilot_leaves_for_later_is_no_loss() -> None:
    (told,) = hints(Config(), [_step("collect", 2, outside_window=3, limit=900)])
    assert told.startswith("3 of 5 ")


def test_a_setting_that_is_made_already_is_not_recommended() -> None:
    lost = [_step("ask", 0, private_person=9, no_fact=9), _step("annotate", 0, no_candidate=4)]
    assert [told.split(":")[0] for told in hints(Config(), lost)] == ["9 of 18 private_person"]
    made = Config.model_validate(
        {"ask": {"writer": "template", "encyclopedia": ["wikipedia"]}, "annotate": {"detector": "portable"}}
    )
    assert [told.split(":")[0] for told in hints(made, lost)] == ["9 of 18 no_fact", "4 of 4 no_candidate"]
