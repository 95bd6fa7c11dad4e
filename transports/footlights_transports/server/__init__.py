"""The server process: start, listen, drain, reload, readiness, metrics and logs. It knows no frame and no route."""
