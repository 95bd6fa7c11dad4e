"""Every test of this project runs under the public test kit."""

import os

from hypothesis import settings

pytest_plugins = ["footlights.testing.plugin"]

# No deadline: machines are noisy. In CI the examples are always the same ones, at home they are new ones each time.
settings.register_profile("home", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")
