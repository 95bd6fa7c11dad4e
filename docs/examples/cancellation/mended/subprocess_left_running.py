"""Subprocess left running, mended."""

import trio


async def scenario() -> None:
    process = await trio.lowlevel.open_process(["sleep", "5"])
    try:
        await trio.sleep(0.01)  # work with the helper
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
    if process.returncode != -9:
        raise RuntimeError("the helper died by itself")
