"""Server process: start, acceptor, shutdown, reload, readiness, metrics and logs. Frames and routes never live here."""
