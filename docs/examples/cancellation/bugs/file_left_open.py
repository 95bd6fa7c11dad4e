"""File left open. open, read, close in a straight line: a cancel in the read skips the close."""

import trio


async def load(path: str) -> str:
    file = await trio.open_file(path)
    text = await file.read()  # here
    await file.aclose()
    return text


async def scenario() -> None:
    texts = []
    for _ in range(2):
        texts.append(await load(__file__))
    if texts[0] != texts[1]:
        raise RuntimeError("changed while we read")
