"""`python -m footlights_transports.workers ARGUMENTS`: a worker, as the router starts it."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import orjson
import typer

from footlights.errors import CommitUnknown, FootlightsError
from footlights.failures import describe
from footlights_transports.cli.development import development_mode
from footlights_transports.config.config import load_config
from footlights_transports.server.logs import VARIABLE, set_up_logs
from footlights_transports.server.serve import serve, serve_here
from footlights_transports.workers.spread import Spread
from footlights_transports.workers.worker import RouterLink


def main() -> None:
    """Serve until SIGTERM, or until the router is gone."""
    given = orjson.loads(sys.argv[1])
    set_up_logs(os.environ.get(VARIABLE, "warning").lower(), sys.stderr)
    file = None if given["file"] is None else Path(given["file"])
    options = {tuple(path): value for path, value in given["options"]}
    spread = Spread(given["workers"], tuple(given["names"]))
    try:
        config = load_config(file, os.environ, options)
        reread = partial(load_config, file, os.environ, options, cast=config.cast, worlds=config.worlds)
        link = RouterLink(given["connections"], given["questions"])
        server = partial(serve, listen=link.listen, owns=lambda name: spread.owner(name) == given["index"])
        with development_mode(sys.stderr) if given["dev"] else nullcontext():
            serve_here(config, lambda _: None, reread, server=server)
    except FootlightsError as error:
        typer.echo(str(error), err=True)
        sys.exit(1 if isinstance(error, CommitUnknown) else 2)
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - a traceback may quote text of users
        typer.echo(f"A worker failed: {describe(error)}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
