"""Subprocess left running.

kill and wait come after the work, not in a finally: a cancel leaves the child process running.
"""

import trio


async def scenario() -> None:
    process = await trio.lowlevel.open_process(["sleep", "5"])
    await trio.sleep(0.01)  # here: work with the helper
    process.kill()
    await process.wait()
    if process.returncode != -9:
        raise RuntimeError("the helper died by itself")
