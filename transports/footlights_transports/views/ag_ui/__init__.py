"""AG-UI view: turns as runs of the AG-UI protocol 1.0, for the clients and pages that speak it.

Everything about AG-UI is here. What is pure, the projection and the reading of requests, is in `pure`.
"""
