"""The files of the page, without a browser: served without a token, complete, and with no address of another host."""

import re
from pathlib import Path

import pytest

import stream_car
from tests.support.http_service import serving

FOLDER = Path(stream_car.__file__).parent / "http" / "page"
FILES = sorted(path.name for path in FOLDER.iterdir())
TEXTS = {name: (FOLDER / name).read_text(encoding="utf-8") for name in FILES}


async def test_the_page_and_its_files_need_no_token_and_everything_else_does() -> None:
    async with serving(token="a-token-for-tests") as running:
        del running.client.headers["Authorization"]
        page = await running.get("/")
        files = {name: await running.get(f"/static/{name}") for name in FILES if name != "index.html"}
        data = [
            await running.get(path) for path in ("/v1/status", "/openapi.json", "/metrics", "/staticv1", "//v1/status")
        ]
        nothing = [await running.get(path) for path in ("/static/", "/static/none.js", "/static/..%2Fservice.py")]

    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    assert {name: answer.text for name, answer in files.items()} == {
        n: t for n, t in TEXTS.items() if n != "index.html"
    }
    assert [answer.status_code for answer in data] == [401] * 5
    assert [answer.status_code for answer in nothing] == [404] * 3


async def test_the_page_may_load_only_its_own_files() -> None:
    async with serving() as running:
        answers = [await running.get("/"), await running.get("/static/main.js")]

    for answer in answers:
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", FILES)
def test_a_file_names_only_files_that_exist_and_no_other_host(name: str) -> None:
    text = TEXTS[name]
    named = set(re.findall(r"/static/([\w.-]+)", text)) | set(re.findall(r"""from "\./([\w.-]+)\"""", text))

    assert named <= set(FILES)
    assert set(re.findall(r"https?://[\w.]+", text)) <= ({"http://www.w3.org"} if name.endswith(".svg") else set())


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".js", ".html"))])
def test_no_script_writes_markup_or_runs_text(name: str) -> None:
    markup = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|srcdoc|DOMParser|style=|\son\w+="

    assert re.findall(markup, TEXTS[name]) == []
