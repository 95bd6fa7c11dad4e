"""Screenshots of the console for the docs: a real server, a real browser, a short conversation in the tavern.

    make screenshots

They are pictures of the page as it is, so a change of the page changes them. The docs do not check that.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import trio

from footlights.authority import SqliteLedger
from footlights_actors.demo.tavern.cast import tavern_cast
from tests.kit.browser import open_browser
from tests.kit.peers.http_peer import open_house

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.kit.browser import Page

PICTURES = Path(__file__).parents[1] / "pictures"
LINES = ("Do you have a room?", "I'll take the attic", "rent the garden room for 1 coin", "Sell me the lantern")


@asynccontextmanager
async def open_page() -> AsyncGenerator[Page]:
    cast = tavern_cast(pace=0.02, load_seconds=0.6, tool_seconds=0.3)
    with TemporaryDirectory() as folder:
        async with (
            SqliteLedger(Path(folder) / "tavern.ledger") as ledger,
            open_house(cast=cast, ledger=ledger) as house,
            open_browser() as browser,
            browser.open_page(f"{house.client.base_url}/", height=860) as page,
        ):
            await page.wait_for("document.querySelector('#persona')?.options.length")
            yield page


async def say(page: Page, text: str, commits: int) -> None:
    await page.type("#line", text)
    await page.press("Enter", 13)
    await page.wait_for(f"document.querySelectorAll('.commit').length >= {commits}")


async def take(page: Page, name: str, theme: str = "light") -> None:
    await page.prefer(theme)
    await page.screenshot(PICTURES / f"{name}.png", whole=False)
    await page.prefer("light")


async def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    async with open_page() as page:
        for number, line in enumerate(LINES, 1):
            await say(page, line, number)
        await page.type("#line", "What is there to drink?")
        await page.press("Enter", 13)
        await page.wait_for("document.querySelectorAll('.turn').length === 5")
        await page.click("Stall me")
        await page.wait_for("document.querySelectorAll('.commit').length >= 5")
        await take(page, "talk", "dark")
        await page.click("Turns", "nav")
        await page.wait_for("document.querySelectorAll('.outcome .changes').length >= 2")
        await take(page, "turns")
        await page.evaluate("document.querySelectorAll('.span')[3].click()")
        await page.wait_for("document.querySelector('.waterfall tfoot')")
        await take(page, "turn")
        await page.click("World", "nav")
        await page.wait_for("document.querySelectorAll('.chain > li').length === 5")
        await page.click("Compare")
        await page.click("Audit now")
        await page.wait_for("document.querySelector('.audit .good') && document.querySelector('.difference .changes')")
        await take(page, "world")
        await page.click("Health", "nav")
        await page.wait_for("document.querySelector('.tile polyline')")
        await page.wait_for("document.querySelectorAll('.gauges dd').length")
        await take(page, "health", "dark")


if __name__ == "__main__":
    trio.run(main)
