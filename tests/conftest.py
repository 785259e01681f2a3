"""Settings for all tests: machines differ in speed, so no example has a deadline; CI tries the same ones each time."""

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("any-machine"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "any-machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """`.ci/run` installs the services that tests marked system use and says so by NEST_SYSTEM: then none of them may be
    skipped for want of one. What a machine does not allow (mounting a small disk) is another matter."""
    report = yield
    wanting = report.skipped and item.get_closest_marker("system") and "not installed" in str(report.longrepr)
    if wanting and os.environ.get("NEST_SYSTEM"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where its service should be installed: {report.longrepr}"
    return report
