"""The page at `/` as a visitor sees it."""

import re
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from playwright.async_api import Error, Page, Route, expect

from stream_car.http.tokens import TokenFile, make_token
from tests.browser.conftest import LOOKS, Visit, save_picture, visit_service

pytestmark = pytest.mark.xdist_group("browser")

QUESTION = "Is Log4j vulnerable to remote code execution through JNDI lookups?"
LOG4J = "#/timeline?scope=" + quote("package=org.apache.logging.log4j:log4j-core")
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
WITHDRAWN: dict[str, object] = {
    "id": "RUSTSEC-1@2",
    "type": "advisory_withdrawn",
    "time": "2023-06-13T00:00:00Z",
    "scope": {"record": ["RUSTSEC-1"]},
    "title": "Withdrawn: over-read",
    "text": "The over-read cannot happen.",
    "state_since": "2022-08-14",
}
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>\u202egnp.exe"

FORGED = "\u2028id: 0\u2028data: {}"  # lines to some readers of server-sent events
FITS = "document.documentElement.scrollWidth <= innerWidth"
WIDTHS = "bars => bars.map((bar) => bar.getBoundingClientRect().width)"

TYPED = "document.createElement('script').text = 'window.ran = 1'"
MARKUP = "document.body.innerHTML = '<p>markup</p>'"
ELSEWHERE = "fetch('http://127.0.0.2:9/').then(() => 'answered', () => 'refused')"


def assert_clean(visit: Visit) -> None:
    """The page reported no error, and sent requests to its own service only."""
    assert visit.errors == []
    assert all(url.startswith(visit.running.url) for url in visit.urls)


async def ask(page: Page, question: str) -> None:
    await page.get_by_role("searchbox", name="Question").fill(question)
    await page.keyboard.press("Enter")


async def test_a_question_shows_what_is_in_force_what_it_replaced_and_what_plain_search_returns() -> None:
    async with visit_service() as visit:
        for look in LOOKS:
            page = await visit.page(look=look)
            await save_picture(page, f"home-{look}")
            await ask(page, QUESTION)
            first = page.locator(".result").first
            await expect(first.get_by_role("heading", level=3)).to_have_text("Log4j 2.17.1")
            await expect(first.get_by_text("In force since 2021-12-28")).to_be_visible()
            chain = first.get_by_role("list", name=re.compile("^From Log4Shell.* to Log4j 2.17.1$"))
            link = chain.get_by_role("listitem").filter(has_text="replaced by Log4j 2.17.0")
            await expect(link.locator("s")).to_have_text("Log4j 2.16.0")
            assert await chain.locator("li.in-force").all_inner_texts() == ["Log4j 2.17.1\n2021-12-28\nin force"]
            assert await chain.locator("li.superseded").count() >= 3
            await expect(first.get_by_text("Also replaced")).to_contain_text("code execution through the JDBC Appender")
            search = page.get_by_role("complementary", name="What plain search returns")
            await expect(search.locator("li").first.locator("s")).to_contain_text("Log4Shell")
            await expect(search.locator("li").first).to_contain_text("fixed by Log4j 2.16.0")
            await expect(search).to_contain_text("5 of these are not in force.")
            await expect(page.locator(".certificate")).to_contain_text("Complete: none of the 95 messages")
            assert await page.evaluate(FITS), "it scrolls sideways"
            await save_picture(page, f"ask-{look}")
            if look == "light":
                await page.set_viewport_size({"width": 1200, "height": 900})
                await save_picture(page, "page", whole=False)
        assert_clean(visit)


async def test_figures_are_shown_only_after_a_click_on_details() -> None:
    async with visit_service() as visit:
        page = await visit.page("#/ask?" + urlencode({"q": QUESTION}))
        first = page.locator(".result").first
        score = first.get_by_text(re.compile(r"score \d+\.\d\d, probability 1\.00"))
        certificate = page.locator(".certificate")
        figures = [certificate.get_by_text(name) for name in ("identifiability φ", "ambiguity κ", "Messages counted")]
        await expect(score).to_be_hidden()
        for figure in figures:
            await expect(figure).to_be_hidden()

        await first.get_by_text("Details").click()
        await certificate.get_by_text("Complete").click()
        await expect(score).to_be_visible()
        for figure in figures:
            await expect(figure).to_be_visible()
        assert await first.get_by_role("list", name=re.compile("^From ")).count() == 4
        await save_picture(page, "details-light")
        assert_clean(visit)


async def test_what_amends_a_document_is_shown_with_it_in_answers_and_timelines_and_how_it_came_to() -> None:
    async with visit_service(with_demo=False) as visit:
        visit.running.engine.publish(AMENDING)
        page = await visit.page("#/ask?" + urlencode({"q": "overflow parser"}))
        result = page.locator(".result").filter(has_text="Overflow in the parser").first
        await expect(result.locator(".amends")).to_have_text("Amended by Exploited now (exploitation-amends-advisory)")
        page = await visit.page("#/timeline?scope=" + quote("package=parser"))
        await expect(page.locator(".amends").first).to_have_text(
            "Overflow in the parser: Amended by Exploited now (exploitation-amends-advisory)"
        )
        page = await visit.page("#/ask?q=" + quote("domain names"))
        result = page.locator(".result").filter(has_text="RFC1").first
        await expect(result.locator(".amends")).to_have_text(
            "Amended by Names again (RFC2, explicit link; replaced by RFC3)"
        )
        assert_clean(visit)


async def test_a_withdrawn_record_is_called_so_with_its_date() -> None:
    async with visit_service(with_demo=False) as visit:
        visit.running.engine.publish([WITHDRAWN])
        page = await visit.page("#/ask?q=over-read")
        result = page.locator(".result")
        await expect(result).to_contain_text("Withdrawn 2022-08-14")
        await expect(result).not_to_contain_text("In force since")
        await expect(page.get_by_text("1 of these is not in force.")).to_be_visible()
        page = await visit.page("#/timeline?scope=" + quote("record=RUSTSEC-1"))
        await expect(page.locator(".timeline li.superseded")).to_contain_text("withdrawn 2022-08-14")
        assert_clean(visit)


async def test_weaker_matches_follow_the_certificate_with_what_they_replaced_and_their_paths_on_demand() -> None:
    async with visit_service() as visit:
        page = await visit.page("#/ask?" + urlencode({"q": QUESTION}))
        weaker = page.locator(".certificate ~ .results .result").filter(has_text="OpenSSL 1.0.1g")
        await expect(weaker).to_contain_text("Replaced: Heartbleed: OpenSSL leaks memory")
        chain = weaker.get_by_role("list", name=re.compile("^From Heartbleed.* to OpenSSL 1.0.1g$"))
        await expect(chain).to_be_hidden()
        await weaker.get_by_text("Details").click()
        await expect(chain).to_be_visible()
        await expect(weaker.get_by_role("link", name="package=openssl, vulnerability=CVE-2014-0160")).to_be_visible()
        assert await page.locator(".certificate").count() == 1
        assert_clean(visit)


async def test_a_timeline_shows_from_when_to_when_each_document_was_in_force() -> None:
    async with visit_service() as visit:
        page = await visit.page("#/ask?q=Log4Shell&as_of=2021-12-12")
        await expect(page.get_by_role("heading", name="In force on 2021-12-12")).to_be_visible()
        search = page.get_by_role("complementary", name="What plain search returns")
        await expect(search).to_contain_text("Plain search knows no date: this is the status now.")
        await page.get_by_role("link", name="package=org.apache.logging.log4j:log4j-core").first.click()
        await expect(page.locator(".timeline").first).to_be_visible()
        for look in LOOKS:
            page = await visit.page(LOG4J, look)
            period = "Log4j 2.15.0 in force from 2021-12-10 to 2021-12-13, replaced by Log4j 2.16.0"
            member = page.get_by_role("listitem").filter(has_text=period)
            await expect(member.locator(".bar")).to_be_visible()
            assert await page.locator(".timeline .in-force .bar").count() == 1
            bars = await page.locator(".timeline").first.locator(".bar").evaluate_all(WIDTHS)
            assert bars[0] < 5 < bars[1] < bars[2], "three days, then five"
            assert await page.evaluate(FITS), "it scrolls sideways"
            await save_picture(page, f"timeline-{look}")
        assert_clean(visit)


async def test_a_timeline_leads_on_to_the_documents_that_a_page_has_no_room_for() -> None:
    async with visit_service(with_demo=False) as visit:
        common = {"type": "advisory", "scope": {"package": "busy", "cve": "CVE-2024-1"}}
        documents = [{**common, "id": f"a{n}", "time": "2024-01-01T00:00:00Z", "order": n} for n in range(1003)]
        visit.running.engine.publish(documents)
        page = await visit.page("#/timeline?scope=" + quote("package=busy"))
        following = page.get_by_role("link", name="Show the following")
        await expect(following).to_be_visible()
        listed = await page.locator(".timeline li").count()
        await following.click()
        await expect(page.locator(".timeline li")).to_have_count(len(documents) - listed)
        await expect(following).to_have_count(0)
        assert_clean(visit)


async def test_changes_appear_as_they_happen_each_with_its_cause() -> None:
    async with visit_service() as visit:
        pages = {look: await visit.page("#/live", look) for look in LOOKS}
        for page in pages.values():
            await expect(page.get_by_text("Connected")).to_be_visible()
        await visit.running.post("/v1/documents", ADVISORY)
        for page in pages.values():
            await expect(page.locator(".changes li")).to_have_count(1)
        await visit.running.post("/v1/documents", RELEASE)
        for look, page in pages.items():
            ended = page.locator(".changes li.superseded")
            await expect(ended).to_contain_text("Overflow in the parser is fixed by Parser 2.0.")
            await expect(ended.get_by_role("link", name="Parser 2.0")).to_have_attribute("href", "#/document?id=rel-1")
            await expect(page.locator(".changes li")).to_have_count(3)
            await save_picture(page, f"live-{look}")
        await visit.running.retract("rel-1")
        for page in pages.values():
            again = page.locator(".changes li").filter(
                has_text="Overflow in the parser is in force: rel-1 was retracted."
            )
            await expect(again).to_have_class("in-force")
            await expect(page.locator(".changes li.superseded").first).to_contain_text("rel-1 was retracted.")
        assert_clean(visit)


async def test_the_live_view_connects_again_after_an_error_that_may_pass_and_reports_any_other() -> None:
    problems = [
        (503, {"code": "in_flight", "detail": "Ask again."}),
        (400, {"code": "invalid", "detail": "No type has this name."}),
    ]

    async def answer(route: Route) -> None:
        if not problems:
            await route.continue_()
            return
        status, problem = problems.pop(0)
        await route.fulfill(status=status, json=problem)

    async with visit_service(with_demo=False) as visit:
        page = await visit.page()
        await page.route("**/v1/subscribe?*", answer)
        await page.goto(f"{visit.running.url}/#/live")
        await expect(page.get_by_role("alert")).to_have_text("No type has this name.")
        await expect(page.locator(".state")).to_have_count(0)
        await page.reload()
        await expect(page.get_by_text("Connected")).to_be_visible()

    assert not problems


async def test_rejected_input_is_shown_with_its_code_and_bytes() -> None:
    async with visit_service() as visit:
        visit.running.engine.publish([b"{broken", {"id": HOSTILE, "type": "advisory"}])
        for look in LOOKS:
            page = await visit.page("#/rejected", look)
            await expect(page.locator(".rejected-list li")).to_have_count(2)
            await page.locator("summary").first.click()
            await expect(page.locator("pre").first).to_have_text("{broken")
            await save_picture(page, f"rejected-{look}")
        assert_clean(visit)


async def test_what_a_publisher_writes_is_shown_as_text_and_nothing_else() -> None:
    hostile = {"title": HOSTILE, "text": HOSTILE, "source": HOSTILE, "url": "javascript:document.title='taken'"}
    async with visit_service(with_demo=False) as visit:
        visit.running.engine.publish([{**ADVISORY, **hostile, "id": HOSTILE}, {**RELEASE, **hostile}, b"<script>"])
        page = await visit.page("#/ask?q=onerror")
        await expect(page.locator(".result")).to_have_count(1)
        await expect(page.locator(".result h3")).to_contain_text("<script>document.title='taken'</script>")
        assert await page.locator("main :is(script, img, [onerror], a[href^=javascript])").count() == 0
        assert "\u202e" not in await page.locator("main").inner_html()
        for view in ("#/timeline?scope=package=parser", "#/rejected"):
            await page.goto(f"{visit.running.url}/{view}")
            await expect(page.locator("main .card").first).to_be_visible()
            assert await page.locator("main :is(script, img, [onerror])").count() == 0
        assert "taken" not in await page.title()
        await page.goto(f"{visit.running.url}/#/live")
        await expect(page.get_by_text("Connected")).to_be_visible()
        for name in ("first", "second"):
            forged = {"id": name, "title": f"{name}{FORGED}", "scope": {"package": [name], "cve": [name]}}
            await visit.running.post("/v1/documents", {**ADVISORY, **forged})
        await expect(page.locator(".changes li")).to_have_count(2)
        await expect(page.locator(".changes p").first).to_contain_text("second id: 0 data: {} is in force.")
        assert_clean(visit)


async def test_the_page_may_run_nothing_but_its_own_scripts() -> None:
    async with visit_service(with_demo=False) as visit:
        page = await visit.page()
        response = await page.request.get(visit.running.url)
        policy = response.headers["content-security-policy"]
        for program in (TYPED, MARKUP):
            with pytest.raises(Error, match="Trusted"):
                await page.evaluate(program)
        assert await page.evaluate(ELSEWHERE) == "refused"

    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert any("Content Security Policy" in text for text in visit.errors)


async def test_a_token_is_requested_once_and_again_after_a_wrong_token() -> None:
    async with visit_service(token="a-token-for-tests") as visit:
        page = await visit.page("#/ask?q=Log4j")
        dialog = page.get_by_role("dialog", name="This service requires a token")
        await dialog.get_by_label("Token").fill("a-wrong-token")
        await page.keyboard.press("Enter")
        await expect(dialog.get_by_role("alert")).to_have_text("That token was not accepted. Try again.")
        await save_picture(page, "token-light")
        await dialog.get_by_label("Token").fill("a-token-for-tests")
        await page.keyboard.press("Enter")
        await expect(page.locator(".result").first).to_be_visible()
        await page.goto(f"{visit.running.url}/#/live")
        await expect(page.get_by_text("Connected")).to_be_visible()
        await expect(dialog).to_be_hidden()


async def test_a_view_that_the_token_does_not_allow_names_the_role_and_offers_another_token(tmp_path: Path) -> None:
    (reader, reader_line), (admin, admin_line) = make_token("reader", ["read"]), make_token("operator", ["admin"])
    (tmp_path / "tokens").write_text(f"{reader_line}\n{admin_line}\n")
    async with visit_service(tokens=TokenFile(tmp_path / "tokens")) as visit:
        page = await visit.page("#/ask?q=Log4j")
        dialog = page.get_by_role("dialog", name="This service requires a token")
        await dialog.get_by_label("Token").fill(reader)
        await page.keyboard.press("Enter")
        await expect(page.locator(".result").first).to_be_visible()
        await page.goto(f"{visit.running.url}/#/rejected")
        problem = "The token `reader` does not have the role `admin`, which this needs. Send a token that has it."
        await expect(page.get_by_role("main").get_by_role("alert")).to_have_text(problem)
        await page.get_by_role("button", name="Use another token").click()
        await dialog.get_by_label("Token").fill(admin)
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Nothing was rejected.")).to_be_visible()


async def test_everything_is_within_reach_of_the_keyboard() -> None:
    async with visit_service() as visit:
        page = await visit.page("#/rejected")
        await expect(page.get_by_text("Nothing was rejected.")).to_be_visible()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("main")).to_be_focused()
        await expect(page.get_by_text("Nothing was rejected.")).to_be_visible()
        await page.get_by_role("link", name="Skip to the content").focus()
        names = []
        for _ in range(6):
            await page.keyboard.press("Tab")
            names.append(await page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent"))
        await page.get_by_role("link", name="Ask", exact=True).press("Enter")
        await page.get_by_role("link", name="Ask", exact=True).focus()
        await page.keyboard.press("/")
        await expect(page.get_by_role("searchbox", name="Question")).to_be_focused()

    assert names[1:] == ["Ask", "Timeline", "Live", "Rejected", "Colours: auto. Change"]


async def test_colours_follow_the_system_until_a_theme_is_chosen_and_the_choice_is_kept() -> None:
    async with visit_service(with_demo=False) as visit:
        page = await visit.page(look="dark")
        paper = "getComputedStyle(document.body).backgroundColor"
        dark = await page.evaluate(paper)
        await page.get_by_role("button", name="Colours: auto. Change").click()
        light = await page.evaluate(paper)
        await page.reload()
        await expect(page.get_by_role("button", name="Colours: light. Change")).to_be_visible()

        assert dark != light == await page.evaluate(paper)


async def test_an_empty_service_shows_what_to_do_and_a_bad_scope_what_is_wrong() -> None:
    async with visit_service(with_demo=False) as visit:
        page = await visit.page()
        await expect(page.locator("main")).to_contain_text(f"stream-car publish FILE --url {visit.running.url}")
        await page.goto(f"{visit.running.url}/#/timeline?scope=nothing")
        await expect(page.get_by_role("alert")).to_contain_text("KEY=VALUE")
