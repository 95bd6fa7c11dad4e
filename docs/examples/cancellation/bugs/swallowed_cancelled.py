"""Swallowed Cancelled.

`except trio.Cancelled` turns a cancel from outside into an ordinary None; the scenario goes on and returns.
"""

import trio


async def query(name: str) -> str | None:
    try:
        with trio.fail_after(5):
            await trio.sleep(0.01)  # here: the round trip
            return f"address of {name}"
    except (trio.TooSlowError, trio.Cancelled):
        return None


async def scenario() -> None:
    names = ("a", "b", "c")
    answers: dict[str, str | None] = {}
    for name in names:
        answers[name] = await query(name)
