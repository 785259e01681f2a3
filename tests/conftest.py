"""Settings for all tests: machines differ in speed, so no example has a deadline; CI tries the same ones each time."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("any-machine"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "any-machine")
