"""The packages that lockfiles and bills of material list."""

import json

import pytest

from stream_car.errors import InvalidRequest
from stream_car.lockfiles.dependencies import LINE_MAX, LINES_MAX, Dependencies, DependencyFile
from stream_car.lockfiles.formats import read_dependencies
from stream_car.lockfiles.toml_locks import TABLES_MAX

NPM_3 = json.dumps(
    {
        "name": "shop",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "packages": {
            "": {"name": "shop", "dependencies": {"lodash": "^4"}},
            "node_modules/lodash": {"version": "4.17.4", "dependencies": {"x": "^1"}},
            "node_modules/a/node_modules/lodash": {"version": "3.0.0"},
            "node_modules/@angular/core": {"version": "1.2.3"},
            "node_modules/alias": {"name": "real", "version": "2.0.0"},
            "node_modules/tools": {"resolved": "tools", "link": True},
            "tools": {"version": "0.0.1"},
        },
    }
)
NPM_1 = json.dumps(
    {
        "lockfileVersion": 1,
        "dependencies": {
            "lodash": {"version": "4.17.4", "requires": {}},
            "a": {"version": "1.0.0", "dependencies": {"lodash": {"version": "3.0.0"}}},
            "alias": {"version": "npm:@real/one@2.0.0"},
            "git": {"version": "git+ssh://git@github.com/x/y.git#abc"},
        },
    }
)
POETRY = """
[[package]]
name = "jinja2"
version = "2.10"

[[package]]
name = "own"
version = "0.1"
[package.source]
type = "directory"
url = "../own"
"""
UV = """
[[package]]
name = "shop"
version = "1.0"
source = { editable = "." }

[[package]]
name = "jinja2"
version = "2.10"
source = { registry = "https://pypi.org/simple" }
"""
CARGO = """
[[package]]
name = "shop"
version = "0.1.0"

[[package]]
name = "hyper"
version = "0.14.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
"""
REQUIREMENTS = """
# what we need
--index-url https://example.org/simple
Jinja2==2.10 \\
    --hash=sha256:abc
requests[security]==2.19.0 ; python_version > "3"  # old
flask>=1.0
django==2.*
pip @ https://example.org/pip.zip
-c constraints.txt
"""
GO = """
github.com/gin-gonic/gin v1.5.0 h1:abc=
github.com/gin-gonic/gin v1.5.0/go.mod h1:abc=
golang.org/x/net v0.1.0/go.mod h1:abc=
github.com/old/pkg v2.0.0+incompatible h1:abc=
"""
CYCLONEDX = json.dumps(
    {
        "bomFormat": "CycloneDX",
        "metadata": {"component": {"type": "container", "name": "shop", "purl": "pkg:oci/shop@1"}},
        "components": [
            {"type": "library", "name": "lodash", "version": "4.17.4", "purl": "pkg:npm/lodash@4.17.4"},
            {"type": "library", "group": "org.x", "name": "y", "components": [{"name": "z", "version": "1"}]},
            {"type": "file", "name": "/etc/passwd"},
        ],
    }
)
CYCLONEDX_XML = """<?xml version="1.0"?>
<bom xmlns="http://cyclonedx.org/schema/bom/1.5">
  <metadata><component type="container"><name>shop</name><purl>pkg:oci/shop@1</purl></component></metadata>
  <components>
    <component type="library"><name>lodash</name><version>4.17.4</version><purl>pkg:npm/lodash@4.17.4</purl>
      <components><component type="library"><name>z</name><version>1</version></component></components>
    </component>
  </components>
</bom>"""
SPDX_2 = json.dumps(
    {
        "spdxVersion": "SPDX-2.3",
        "packages": [
            {"SPDXID": "SPDXRef-root", "name": "shop"},
            {
                "SPDXID": "SPDXRef-1",
                "name": "lodash",
                "versionInfo": "4.17.4",
                "externalRefs": [{"referenceType": "purl", "referenceLocator": "pkg:npm/lodash@4.17.4"}],
            },
            {"SPDXID": "SPDXRef-2", "name": "z", "versionInfo": "1"},
        ],
        "relationships": [{"relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-root"}],
    }
)
SPDX_3 = json.dumps(
    {
        "@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld",
        "@graph": [
            {"type": "SpdxDocument", "rootElement": ["urn:root"]},
            {"type": "software_Package", "spdxId": "urn:root", "name": "shop", "software_packageUrl": "pkg:oci/shop@1"},
            {"type": "software_Package", "spdxId": "urn:1", "software_packageUrl": "pkg:npm/lodash@4.17.4"},
            {"type": "software_Package", "spdxId": "urn:2", "name": "z", "software_packageVersion": "1"},
        ],
    }
)
LODASH, APP = "pkg:npm/lodash@4.17.4", "pkg:oci/shop@1"


def read(name: str, text: str) -> Dependencies:
    return read_dependencies([DependencyFile(name=name, text=text)])


@pytest.mark.parametrize(
    ("name", "text", "packages", "product"),
    [
        (
            "package-lock.json",
            NPM_3,
            (LODASH, "pkg:npm/lodash@3.0.0", "pkg:npm/%40angular/core@1.2.3", "pkg:npm/real@2.0.0"),
            "pkg:npm/shop@1.0.0",
        ),
        (
            "web/npm-shrinkwrap.json",
            NPM_1,
            (LODASH, "pkg:npm/a@1.0.0", "pkg:npm/lodash@3.0.0", "pkg:npm/%40real/one@2.0.0", "pkg:npm/git"),
            "",
        ),
        ("poetry.lock", POETRY, ("pkg:pypi/jinja2@2.10",), "pkg:pypi/own@0.1"),
        ("uv.lock", UV, ("pkg:pypi/jinja2@2.10",), "pkg:pypi/shop@1.0"),
        ("Cargo.lock", CARGO, ("pkg:cargo/hyper@0.14.0",), "pkg:cargo/shop@0.1.0"),
        (
            "requirements-dev.txt",
            REQUIREMENTS,
            (
                *("pkg:pypi/jinja2@2.10", "pkg:pypi/requests@2.19.0", "pkg:pypi/flask"),
                *("pkg:pypi/django", "pkg:pypi/pip"),
            ),
            "",
        ),
        (
            "go.sum",
            GO,
            ("pkg:golang/github.com/gin-gonic/gin@v1.5.0", "pkg:golang/github.com/old/pkg@v2.0.0%2Bincompatible"),
            "",
        ),
        ("bom.json", CYCLONEDX, (LODASH, "org.x/y", "z@1"), APP),
        ("bom.xml", CYCLONEDX_XML, (LODASH, "z@1"), APP),
        ("shop.spdx.json", SPDX_2, (LODASH, "z@1"), ""),
        ("shop.spdx.json", SPDX_3, (LODASH, "z@1"), APP),
    ],
)
def test_every_package_is_listed_once_and_the_project_itself_is_the_product(
    name: str, text: str, packages: tuple[str, ...], product: str
) -> None:
    listed = read(name, text)

    assert (listed.packages, listed.product) == (packages, product)


def test_several_files_are_read_as_one() -> None:
    files = [DependencyFile(name="uv.lock", text=UV), DependencyFile(name="poetry.lock", text=POETRY)]

    assert read_dependencies(files).packages == ("pkg:pypi/jinja2@2.10",)
    assert read_dependencies(files).product == "pkg:pypi/shop@1.0"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("package-lock.json", "{", "truncated"),
        ("package-lock.json", "{}", "lockfileVersion"),
        ("poetry.lock", "[[package]", "poetry.lock cannot be read"),
        ("uv.lock", "[[package]]\nversion = '1'", "missing required field `name`"),
        ("Cargo.lock", "[[package]]\nname = ''\nsource = 'x'", "name is a required"),
        ("package-lock.json", '{"lockfileVersion": 3, "packages": {"node_modules/": {}}}', "name is a required"),
        ("go.sum", "example.org/ v1.0.0 h1:abc=", "name is a required"),
        ("uv.lock", ".".join("a" * 3000) + " = 1", "more than 50 dots"),
        ("uv.lock", "x = {" + " . ".join(["'a.'", '"\\""'] * 30) + " = 1}", "more than 50 dots"),
        ("bom.xml", "<bom>" + "<components><component>" * 3000, "elements are nested more than"),
        ("requirements.txt", "not a requirement!", "line 1 is not a requirement"),
        ("requirements.txt", "-r base.txt", "it includes base.txt"),
        ("go.sum", "github.com/x", "line 1 is not"),
        ("bom.xml", "<html/>", "not a CycloneDX"),
        ("bom.xml", "<bom>", "not valid XML"),
        ("other.json", "{}", "its format is not known"),
        ("other.toml", "x", "its format is not known"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(name: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        read(name, text)

    assert error.value.code == "files"
    assert str(error.value).startswith(f"{name} cannot be read")
    assert reason in str(error.value)


def test_folders_and_addresses_are_listed_by_their_name_or_as_they_are() -> None:
    lines = (
        *(
            "jinja2==2.10",
            "git+https://example.org/y.git@v1#egg=y[extra]",
            "-e git+ssh://example.org/z#subdirectory=a&egg=z",
        ),
        *("-e .", "./local", "git+https://example.org/unnamed", "flask==1.0"),
    )
    assert read("requirements.txt", "\n".join(lines)).packages == (
        *("pkg:pypi/jinja2@2.10", "pkg:pypi/y", "pkg:pypi/z", "-e .", "./local"),
        *("git+https://example.org/unnamed", "pkg:pypi/flask@1.0"),
    )


def test_an_included_file_may_be_given_beside_it() -> None:
    files = [
        DependencyFile(name="requirements.txt", text="-r base.txt\nflask==1.0"),
        DependencyFile(name="base.txt", text="jinja2==2.10"),
    ]

    assert read_dependencies(files).packages == ("pkg:pypi/flask@1.0", "pkg:pypi/jinja2@2.10")


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE bom [<!ENTITY lol "lol"><!ENTITY lots "&lol;&lol;">]>',
        '<!DOCTYPE bom [<!ENTITY file SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE bom SYSTEM "http://example.org/bom.dtd">',
    ],
)
def test_xml_with_entities_is_not_read(declaration: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        read("bom.xml", f"{declaration}<bom><components/></bom>")

    assert "declares a document type or an entity" in str(error.value)


def test_components_nested_without_end_are_an_error() -> None:
    component: dict[str, object] = {"name": "x"}
    for _ in range(200):
        component = {"name": "x", "components": [component]}

    with pytest.raises(InvalidRequest) as error:
        read("bom.json", json.dumps({"bomFormat": "CycloneDX", "components": [component]}))
    assert "nested more than" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("requirements.txt", "a" + ",".join([">=1"] * 1_000), "the requirement in line 1 is longer than 1,000 char"),
        ("requirements.txt", "a" + " " * LINE_MAX + "==1", "line 1 is longer than 65,536 characters"),
        ("requirements.txt", "a \\\n" * 40_000, "is longer than 65,536 characters"),
        ("requirements.txt", "a\n" * LINES_MAX, "it has more than 200,000 lines"),
        ("go.sum", "a v1.0 h1:x\n" * LINES_MAX, "it has more than 200,000 lines"),
        ("uv.lock", "[a.b]\n" * (TABLES_MAX + 1), "it has more than 50,000 tables"),
        ("uv.lock", f"a = '{'x' * LINE_MAX}'", "line 1 is longer than 65,536 characters"),
        ("Cargo.lock", "[[package]]\nname='a'\n" * LINES_MAX, "it has more than 200,000 lines"),
    ],
)
def test_a_file_that_would_take_long_to_read_is_an_error(name: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as raised:
        read_dependencies([DependencyFile(name=name, text=text)])
    assert raised.value.code == "files"
