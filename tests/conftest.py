"""Every test of this project runs under the public test kit."""

pytest_plugins = ["footlights.testing.plugin"]
