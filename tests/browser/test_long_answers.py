"""What of a long answer the page shows: the documents of one state, and texts that unfold."""

import re
from urllib.parse import urlencode

import pytest
from playwright.async_api import expect

from tests.browser.conftest import visit_service

pytestmark = pytest.mark.xdist_group("browser")


async def test_a_timeline_of_one_state_has_all_of_it_however_many_others_there_are() -> None:
    async with visit_service(with_demo=False) as visit:
        scope = {"package": "busy", "cve": "CVE-2024-1"}
        fixes = [
            {"id": f"p{n}", "type": "release_note", "time": "2024-01-01", "order": n, "scope": scope}
            for n in range(1003)
        ]
        advisory = {"id": "a", "type": "advisory", "time": "2023-12-01", "scope": scope, "title": "The `parser` leaks"}
        visit.running.engine.publish([advisory, *fixes])
        page = await visit.page("#/timeline?" + urlencode({"scope": "package=busy", "state": "ended"}))
        member = page.locator(".timeline li")
        await expect(member).to_have_count(1)
        await expect(member).to_contain_text("The parser leaks in force from 2023-12-01 to 2024-01-01, fixed by p")
        await expect(member.locator("code")).to_have_text("parser")
        assert [url for url in visit.urls if "states=ended" in url]
        nothing = await visit.page("#/timeline?" + urlencode({"scope": "package=none", "state": "ended"}))
        await expect(nothing.get_by_text("No document with these values has this state.")).to_be_visible()
        assert visit.errors == []


async def test_a_long_text_ends_after_a_word_and_unfolds() -> None:
    async with visit_service(with_demo=False) as visit:
        text = "The `parser` overflows. " * 60
        document: dict[str, object] = {
            "id": "a",
            "type": "advisory",
            "time": "2024-01-01",
            "scope": {"package": "p"},
            "text": text,
        }
        visit.running.engine.publish(document)
        page = await visit.page("#/ask?q=overflow")
        result = page.locator(".result").first
        await expect(result.locator("p.text").first).to_contain_text(re.compile(r"(parser|The|overflows\.) …$"))
        await expect(result.locator("p.text code").first).to_have_text("parser")
        await result.get_by_text("Whole text").click()
        await expect(result.locator("details p.text")).to_have_text(" ".join(text.replace("`", "").split()))
        assert visit.errors == []
