"""The page at `/` as a visitor sees it."""

import re
from urllib.parse import quote, urlencode

import pytest
from playwright.async_api import Error, Page, expect

from tests.browser.conftest import LOOKS, Visit, photographed, visiting

pytestmark = pytest.mark.xdist_group("browser")

QUESTION = "Is Log4j vulnerable to remote code execution through JNDI lookups?"
LOG4J = "#/scope?in=" + quote("package=org.apache.logging.log4j:log4j-core")
ADVISORY = {
    "id": "adv-1",
    "type": "advisory",
    "time": "2024-01-01T00:00:00Z",
    "title": "Overflow in the parser",
    "scope": {"package": ["parser"], "cve": ["CVE-2024-1"]},
}
RELEASE = {
    "id": "rel-1",
    "type": "release_note",
    "time": "2024-02-01T00:00:00Z",
    "title": "Parser 2.0",
    "url": "https://example.org/parser",
    "scope": {"package": ["parser"], "cve": ["CVE-2024-1"]},
}
AMENDING: list[dict[str, object]] = [
    {**ADVISORY},
    {**ADVISORY, "id": "kev-1", "type": "known_exploited", "time": "2024-01-02T00:00:00Z", "title": "Exploited now"},
    {"id": "RFC1", "type": "standard", "time": "1987-11-01T00:00:00Z", "title": "Domain names"},
    {"id": "RFC2", "type": "standard", "time": "1997-07-01T00:00:00Z", "title": "Clarified", "amends": ["RFC1"]},
    {"id": "RFC3", "type": "standard", "time": "1999-07-01T00:00:00Z", "title": "Names again", "supersedes": ["RFC2"]},
]
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>\u202egnp.exe"

TYPED = "document.createElement('script').text = 'window.ran = 1'"
MARKUP = "document.body.innerHTML = '<p>markup</p>'"
ELSEWHERE = "fetch('http://127.0.0.2:9/').then(() => 'answered', () => 'refused')"


def clean(visit: Visit) -> None:
    """The page complained of nothing, and asked nobody but its service."""
    assert visit.complaints == []
    assert all(url.startswith(visit.running.url) for url in visit.asked)


async def ask(page: Page, question: str) -> None:
    await page.get_by_role("searchbox", name="Question").fill(question)
    await page.keyboard.press("Enter")


async def test_a_question_shows_what_is_in_force_the_chain_and_what_relevance_would_have_said() -> None:
    async with visiting() as visit:
        for look in LOOKS:
            page = await visit.page(look=look)
            await photographed(page, f"home-{look}")
            await ask(page, QUESTION)
            first = page.locator(".result").first
            await expect(first.get_by_role("heading")).to_have_text("Log4j 2.17.1")
            chain = first.get_by_role("img")
            await expect(chain).to_have_accessible_name(re.compile("Log4j 2.16.0 is void by Log4j 2.17.0 \\(link\\)"))
            assert await chain.locator(".box.end").count() == 1
            assert await chain.locator(".box.void").count() >= 3
            relevance = page.get_by_role("complementary", name="What plain relevance says")
            await expect(relevance.locator("li").first.locator("s")).to_contain_text("Log4Shell")
            await expect(relevance).to_contain_text("of these 5 no longer hold")
            await expect(page.locator(".certificate")).to_contain_text("Complete")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
            await photographed(page, f"ask-{look}")
        clean(visit)


async def test_what_amends_a_document_is_shown_with_it_in_answers_and_timelines_and_how_it_came_to() -> None:
    async with visiting(with_demo=False) as visit:
        visit.running.engine.publish(AMENDING)
        page = await visit.page("#/ask?" + urlencode({"q": "overflow parser"}))
        result = page.locator(".result").filter(has_text="Overflow in the parser").first
        await expect(result.locator(".amends")).to_have_text("Amended by Exploited now (exploitation-amends-advisory)")
        page = await visit.page("#/scope?in=" + quote("package=parser"))
        await expect(page.locator(".amends").first).to_have_text(
            "Overflow in the parser: Amended by Exploited now (exploitation-amends-advisory)"
        )
        page = await visit.page("#/ask?q=" + quote("domain names"))
        result = page.locator(".result").filter(has_text="RFC1").first
        await expect(result.locator(".amends")).to_have_text(
            "Amended by Names again (RFC2, by name; void by RFC3, a link)"
        )
        clean(visit)


async def test_a_timeline_shows_from_when_to_when_each_document_held() -> None:
    async with visiting() as visit:
        page = await visit.page("#/ask?q=Log4Shell&as_of=2021-12-12")
        await expect(page.get_by_role("heading", name="In force on 2021-12-12")).to_be_visible()
        await page.get_by_role("link", name="package=org.apache.logging.log4j:log4j-core").first.click()
        await expect(page.locator(".timeline").first).to_be_visible()
        for look in LOOKS:
            page = await visit.page(LOG4J, look)
            picture = page.get_by_role("img", name=re.compile("Log4j 2.15.0 held from 2021-12-10 to 2021-12-13"))
            await expect(picture).to_be_visible()
            assert await page.locator(".timeline .holds rect").count() == 1
            await photographed(page, f"timeline-{look}")
        clean(visit)


async def test_changes_appear_as_they_happen_each_with_its_cause() -> None:
    async with visiting() as visit:
        pages = {look: await visit.page("#/live", look) for look in LOOKS}
        for page in pages.values():
            await expect(page.get_by_text("Listening")).to_be_visible()
        await visit.running.post("/v1/documents", ADVISORY)
        for page in pages.values():
            await expect(page.locator(".changes li")).to_have_count(1)
        await visit.running.post("/v1/documents", RELEASE)
        for look, page in pages.items():
            ended = page.locator(".changes li.void")
            await expect(ended).to_contain_text("Overflow in the parser is void now, because of Parser 2.0.")
            assert await ended.get_by_role("link").get_attribute("href") == "https://example.org/parser"
            await expect(page.locator(".changes li")).to_have_count(3)
            await photographed(page, f"live-{look}")
        clean(visit)


async def test_refused_input_is_shown_with_its_code_and_bytes() -> None:
    async with visiting() as visit:
        visit.running.engine.publish([b"{broken", {"id": HOSTILE, "type": "advisory"}])
        for look in LOOKS:
            page = await visit.page("#/rejected", look)
            await expect(page.locator(".refusals li")).to_have_count(2)
            await page.locator("summary").first.click()
            await expect(page.locator("pre").first).to_have_text("{broken")
            await photographed(page, f"rejected-{look}")
        clean(visit)


async def test_what_a_publisher_writes_is_text_and_nothing_else() -> None:
    hostile = {"title": HOSTILE, "text": HOSTILE, "source": HOSTILE, "url": "javascript:document.title='taken'"}
    async with visiting(with_demo=False) as visit:
        visit.running.engine.publish([{**ADVISORY, **hostile, "id": HOSTILE}, {**RELEASE, **hostile}, b"<script>"])
        page = await visit.page("#/ask?q=onerror")
        await expect(page.locator(".result")).to_have_count(1)
        await expect(page.locator(".result h3")).to_contain_text("<script>document.title='taken'</script>")
        assert await page.locator("main :is(script, img, [onerror], a[href^=javascript])").count() == 0
        assert "\u202e" not in await page.locator("main").inner_html()
        for view in ("#/scope?in=package=parser", "#/rejected"):
            await page.goto(f"{visit.running.url}/{view}")
            await expect(page.locator("main .card").first).to_be_visible()
            assert await page.locator("main :is(script, img, [onerror])").count() == 0
        assert "taken" not in await page.title()
        clean(visit)


async def test_the_page_may_run_nothing_but_its_own_scripts() -> None:
    async with visiting(with_demo=False) as visit:
        page = await visit.page()
        response = await page.request.get(visit.running.url)
        policy = response.headers["content-security-policy"]
        for program in (TYPED, MARKUP):
            with pytest.raises(Error, match="Trusted"):
                await page.evaluate(program)
        assert await page.evaluate(ELSEWHERE) == "refused"

    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert any("Content Security Policy" in text for text in visit.complaints)


async def test_a_token_is_asked_for_once_and_a_wrong_one_again() -> None:
    async with visiting(token="a-token-for-tests") as visit:
        page = await visit.page("#/ask?q=Log4j")
        dialog = page.get_by_role("dialog", name="This service wants a token")
        await dialog.get_by_label("Token").fill("a-wrong-token")
        await page.keyboard.press("Enter")
        await expect(dialog.get_by_role("alert")).to_have_text("That was not it. Try again.")
        await photographed(page, "token-light")
        await dialog.get_by_label("Token").fill("a-token-for-tests")
        await page.keyboard.press("Enter")
        await expect(page.locator(".result").first).to_be_visible()
        await page.goto(f"{visit.running.url}/#/live")
        await expect(page.get_by_text("Listening")).to_be_visible()
        await expect(dialog).to_be_hidden()


async def test_everything_is_within_reach_of_the_keyboard() -> None:
    async with visiting() as visit:
        page = await visit.page("#/rejected")
        await expect(page.get_by_text("Nothing was refused.")).to_be_visible()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        reached = []
        for _ in range(6):
            await page.keyboard.press("Tab")
            reached.append(
                await page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent")
            )
        await page.get_by_role("link", name="Ask", exact=True).press("Enter")
        await page.get_by_role("link", name="Ask", exact=True).focus()
        await page.keyboard.press("/")
        await expect(page.get_by_role("searchbox", name="Question")).to_be_focused()

    assert reached[1:] == ["Ask", "Timeline", "Live", "Rejected", "Colours: auto. Change"]


async def test_colours_follow_the_system_until_one_is_chosen_and_the_choice_is_kept() -> None:
    async with visiting(with_demo=False) as visit:
        page = await visit.page(look="dark")
        paper = "getComputedStyle(document.body).backgroundColor"
        dark = await page.evaluate(paper)
        await page.get_by_role("button", name="Colours: auto. Change").click()
        light = await page.evaluate(paper)
        await page.reload()
        await expect(page.get_by_role("button", name="Colours: light. Change")).to_be_visible()

        assert dark != light == await page.evaluate(paper)


async def test_an_empty_service_says_what_to_do_and_a_bad_question_what_is_wrong() -> None:
    async with visiting(with_demo=False) as visit:
        page = await visit.page()
        await expect(page.locator("main")).to_contain_text(f"stream-car publish FILE --url {visit.running.url}")
        await page.goto(f"{visit.running.url}/#/scope?in=nothing")
        await expect(page.get_by_role("alert")).to_contain_text("KEY=VALUE")
