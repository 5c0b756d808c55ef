"""A real browser on the page of a real service.

The browser is the system's own Chromium (Debian: `apt-get install chromium`). Without one these tests are skipped, and
the summary reports it; with `TEST_BROWSER=required` that is a failure, as in the gate.
"""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

import stream_car
from stream_car import demo
from stream_car.http.tokens import Tokens
from tests.support.async_tests import pytest_pyfunc_call
from tests.support.http_service import Running, serving
from tests.support.repository import ROOT
from tests.support.servers import NO_BROWSER

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
LOOKS = ("light", "dark", "narrow")
SCREENSHOTS = ROOT / ".screenshots"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests if there is no browser, unless one is required."""
    if CHROMIUM is not None:
        return
    if os.environ.get("TEST_BROWSER") == "required":
        raise pytest.UsageError(NO_BROWSER)
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))


class Visit:
    """A browser on a service. It collects the page's `errors`, which must stay empty, and its requests."""

    def __init__(self, running: Running, browser: Browser) -> None:
        self.running = running
        self.browser = browser
        self.errors: list[str] = []
        self.urls: list[str] = []

    async def page(self, view: str = "", look: str = "light") -> Page:
        """Open a view in a new window, in one of the `LOOKS`."""
        context = await self.browser.new_context(
            viewport={"width": 390, "height": 844} if look == "narrow" else {"width": 1280, "height": 900},
            color_scheme="dark" if look == "dark" else "light",
            reduced_motion="reduce",
        )
        page = await context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: self.urls.append(request.url))
        await page.goto(f"{self.running.url}/{view}")
        return page


@asynccontextmanager
async def visit_service(
    *, token: str | None = None, tokens: Tokens | None = None, with_demo: bool = True
) -> AsyncIterator[Visit]:
    """Run a service over the demo's feed, and a browser."""
    engine = stream_car.open()
    if with_demo:
        engine.publish(demo.feed())
    async with serving(engine=engine, token=token, tokens=tokens) as running, async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield Visit(running, browser)
        finally:
            await browser.close()


async def save_picture(page: Page, name: str, *, whole: bool = True) -> None:
    """Save a picture of the whole page, or of what fits the window."""
    SCREENSHOTS.mkdir(exist_ok=True)
    await page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)


__all__ = ["pytest_collection_modifyitems", "pytest_pyfunc_call"]
