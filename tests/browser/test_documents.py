"""Every bar and event leads to its document, shown as it was published, and causes are read without a mouse."""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import visit_service

pytestmark = pytest.mark.xdist_group("browser")

SCOPE = {"package": ["parser"], "cve": ["CVE-2024-1"]}
ADVISORY = {"id": "adv-1", "type": "advisory", "time": "2024-01-01", "title": "Overflow in the parser", "scope": SCOPE}
RELEASE = {"id": "rel-1", "type": "release_note", "time": "2024-02-01", "title": "Parser 2.0", "scope": SCOPE}
MARKUP = "<img src=x onerror=\"document.title='taken'\">"


async def test_a_bar_leads_to_its_document_and_the_document_to_what_ended_it() -> None:
    text = f"Call `parse(x)` only. {MARKUP}"
    async with visit_service(with_demo=False) as visit:
        visit.running.engine.publish([{**ADVISORY, "text": text, "severity": "high"}, RELEASE])
        page = await visit.page("#/timeline?scope=package=parser")
        first = page.get_by_role("listitem").filter(has_text="Overflow in the parser").first
        await expect(first).to_contain_text("fixed by Parser 2.0")
        await first.get_by_role("link", name="Overflow in the parser").click()

        await expect(page.get_by_role("heading", level=1)).to_have_text("Overflow in the parser")
        await expect(page.locator(".text code")).to_have_text("parse(x)")
        await expect(page.locator(".text")).to_contain_text("<img src=x")
        await expect(page.get_by_text("package=parser").first).to_be_visible()
        await page.get_by_role("link", name="rel-1").first.click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Parser 2.0")
        assert visit.errors == []


async def test_a_timeline_can_be_limited_to_what_is_in_force_or_has_ended() -> None:
    async with visit_service(with_demo=False) as visit:
        visit.running.engine.publish([ADVISORY, RELEASE])
        for state, shown, hidden in (("in_force", "Parser 2.0", "Overflow"), ("ended", "Overflow", "In force since")):
            page = await visit.page(f"#/timeline?scope=package=parser&state={state}")
            bars = page.locator(".timeline ol > li")
            await expect(bars).to_have_count(1)
            await expect(bars.locator("b")).to_contain_text(shown)
            await expect(bars.locator("b")).not_to_contain_text(hidden)
        assert visit.errors == []
