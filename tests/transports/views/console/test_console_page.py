"""The console in a real browser: every screen and button, in both themes, narrow and wide, without a complaint."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from footlights.authority import SqliteLedger
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import AccessPolicy
from tests.kit.browser import NO_BROWSER, find_browser, open_browser
from tests.kit.peers.http_peer import open_house

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights import Cast, Prompt
    from footlights_actors import Line
    from tests.kit.browser import Page
    from tests.kit.peers.http_peer import House

pytestmark = pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)

TOKEN = "the-token-of-an-operator"
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> "
    "\u202eEDDA \u0627\u0644\u0646\u0632\u0644"
)
LONG = "word " * 40_000
WIDTHS = (360, 1280)
THEMES = ("light", "dark")
SCREENS = ("talk", "turns", "world", "health")

UNNAMED = """
[...document.querySelectorAll("button, a, input, select, textarea, [role=img]")]
    .filter((each) => each.checkVisibility() && !each.innerText?.trim() && !each.getAttribute("aria-label")
        && !each.labels?.length && !each.title)
    .map((each) => each.outerHTML.slice(0, 200))
"""
TOO_WIDE = """
document.documentElement.scrollWidth > innerWidth && [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".scroll"))
    .map((each) => each.outerHTML.slice(0, 120))
"""
FAINT = Path(__file__).with_name("faint.js").read_text(encoding="utf-8")


@asynccontextmanager
async def open_console(house: House, *, complains: bool = False) -> AsyncGenerator[Page]:
    async with open_browser() as browser, browser.open_page(f"{house.client.base_url}/") as page:
        yield page
        assert complains or page.complaints == []


async def ready(page: Page) -> None:
    await page.wait_for("document.querySelector('#persona')?.options.length")


async def say(page: Page, text: str) -> None:
    await page.type("#line", text)
    await page.press("Enter", 13)


async def commits(page: Page, count: int) -> None:
    await page.wait_for(f"document.querySelectorAll('.commit').length >= {count}")


async def promised(page: Page, *lines: str) -> None:
    """Wait until the account says this, and every promise holds."""
    for each in lines:
        await page.wait_for(f"document.querySelector('.proof').innerText.includes({each!r})")
    assert await page.evaluate("document.querySelectorAll('.promises .bad').length") == 0


def quick(pace: float = 0.004) -> Cast:
    return tavern_cast(pace=pace, load_seconds=0.1, tool_seconds=0.05)


async def test_every_screen_is_whole_in_both_themes_and_at_two_widths(tmp_path: Path) -> None:
    async with (
        SqliteLedger(tmp_path / "a.ledger") as ledger,
        open_house(cast=quick(0), ledger=ledger) as house,
        open_console(house) as page,
    ):
        await ready(page)
        await page.wait_for("document.body.innerText.includes('Nothing was said yet')")
        for number, line in enumerate(("Hello", "I'll take the attic", "rent the garden room for 1 coin"), 1):
            await say(page, line)
            await commits(page, number)
        for name in SCREENS:
            await page.click(name.capitalize(), "nav")
            await page.wait_for(f"document.querySelector('main').className === 'screen-{name}'")
            if name == "turns":
                await page.wait_for("document.body.innerText.includes('rule lodging: wrong price')")
                await page.wait_for("document.querySelector('.span')")
                await page.evaluate("document.querySelector('.span').click()")
                await page.wait_for("document.querySelector('.waterfall tfoot')")
                await page.wait_for("document.querySelectorAll('.events tbody tr').length > 3")
                sum_of_parts = """[...document.querySelectorAll('.waterfall .part')]
                    .reduce((sum, each) => sum + parseFloat(each.style.width.match(/([\\d.e-]+)%/)[1]), 0)"""
                assert await page.evaluate(sum_of_parts) == pytest.approx(100, abs=0.1)
            if name == "world":
                await page.wait_for("document.querySelectorAll('.chain > li').length === 3")
                await page.click("Audit now")
                await page.wait_for("document.body.innerText.includes('Nothing was altered: 3 commits')")
                await page.click("Compare")
                await page.wait_for("document.querySelector('.difference').innerText.includes('/purse')")
                await page.click("rooms", ".tree")
                await page.wait_for("document.querySelector('.crumbs').innerText.includes('rooms')")
                await page.type("input[type=search]", "traveller")
                await page.wait_for("document.querySelector('.tree').innerText.includes('/rooms/attic/guest')")
                await page.evaluate("document.querySelectorAll('.chain summary')[2].click()")
                await page.click("The world after it")
                await page.wait_for("document.querySelector('.tree').innerText.includes('Nothing found')")
            if name == "health":
                await page.wait_for("document.querySelector('.tile svg') && document.querySelector('.gauges dd')")
            for theme in THEMES:
                await page.prefer(theme)
                for width in WIDTHS:
                    await page.resize(width, 800)
                    assert await page.evaluate(TOO_WIDE) is False, f"{name} is wider than {width}"
                assert await page.evaluate(UNNAMED) == []
                assert await page.evaluate(FAINT) == [], f"{name}, {theme}"


async def test_the_buttons_show_what_is_promised() -> None:
    async with open_house(cast=quick(0.012)) as house, open_console(house) as page:
        await ready(page)
        await say(page, "Hello")
        await page.wait_for("document.querySelector('.npc .said')?.innerText.length > 5")
        await page.click("Stop")
        await commits(page, 1)
        await page.wait_for("document.querySelector('.log').innerText.includes('interrupted: canceled')")
        await say(page, "Tell me a rumour")
        await page.wait_for("document.querySelectorAll('.turn').length === 2")
        await page.click("Barge in")
        await commits(page, 3)
        await page.wait_for("document.querySelector('.log').innerText.includes('interrupted: barge in')")
        await say(page, "What is there to drink?")
        await page.wait_for("document.querySelectorAll('.turn').length === 4")
        await page.click("Cut my connection")
        await commits(page, 4)
        await promised(page, "resumed once", "nothing is missing in silence", "every word arrived", "committed once")
        await say(page, "Sell me the lantern")
        await page.wait_for("document.querySelectorAll('.turn').length === 5")
        await page.click("Stall me")
        await commits(page, 5)
        await promised(
            page, "each one declared", "nothing is missing in silence", "every word arrived", "committed once"
        )
        await page.click("Approve")
        await commits(page, 6)
        assert house.stage.world["lantern"]


async def test_hostile_words_are_words_and_a_token_opens_the_page() -> None:
    def script(prompt: Prompt) -> list[Line]:
        return [Say(LONG)] if "long" in prompt.user else [Say(HOSTILE)]

    cast = standard_cast(ScriptedModel(script), world={"<b>bold</b>": HOSTILE})
    policy = AccessPolicy({"ops": TOKEN}, roles={"ops": {"operator": True}})
    async with open_house(cast=cast, policy=policy) as house, open_console(house) as page:
        await page.wait_for("document.body.innerText.includes('This server wants a token')")
        await page.type("#token", "it-is-not-this-token")
        await page.click("Open")
        await page.wait_for("document.querySelector('.failure')")
        await page.evaluate("document.querySelector('#token').value = ''")
        await page.type("#token", TOKEN)
        await page.click("Open")
        await ready(page)
        page.complaints.clear()  # the browser reports each 401
        await say(page, HOSTILE)
        await commits(page, 1)
        await say(page, "long")
        await commits(page, 2)
        for name in SCREENS[1:]:
            await page.click(name.capitalize(), "nav")
            await page.wait_for(f"document.querySelector('main').className === 'screen-{name}'")
            if name == "turns":
                await page.wait_for("document.querySelector('.span')")
                await page.evaluate("document.querySelector('.span').click()")
                await page.wait_for("document.querySelector('.events')")
            assert await page.evaluate(TOO_WIDE) is False, name
            assert "owned" not in await page.evaluate("document.title")
            assert await page.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert page.complaints == []


async def test_a_server_that_goes_away_is_noticed() -> None:
    async with open_house(cast=quick(0)) as house, open_console(house, complains=True) as page:
        await ready(page)
        house.stop()
        await page.wait_for("document.querySelector('#link').innerText.includes('does not answer')")
