"""Bills of material: CycloneDX as JSON and XML, SPDX 2 and 3 as JSON.

Promise: XML is read without entities: a document type or an entity declaration is an error.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

import msgspec

from stream_car.lockfiles.dependencies import Dependencies, DependencyFile, unreadable

DEPTH_MAX = 100  # of components in components
XML_DEPTH_MAX = 2 * DEPTH_MAX + 20  # of elements: two for each component, and what surrounds them
SOFTWARE = ("", "application", "container", "firmware", "framework", "library", "operating-system", "platform")

Fields = Mapping[str, object]


def read_json_sbom(file: DependencyFile) -> Dependencies | None:
    """Return what a bill of materials in JSON lists; `None` if the file is something else."""
    try:
        tree = msgspec.json.decode(file.text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise unreadable(file, str(error)) from None
    if not isinstance(tree, dict):
        return None
    if tree.get("bomFormat") == "CycloneDX":
        return _cyclonedx(file, tree)
    if "spdxVersion" in tree:
        return _spdx2(tree)
    if "@graph" in tree and "spdx" in str(tree.get("@context", "")).lower():
        return _spdx3(tree)
    return None


def read_xml_sbom(file: DependencyFile) -> Dependencies:
    """Return what a bill of materials in the XML of CycloneDX lists."""
    root = _parse_xml(file)
    namespace, _, name = root.tag.rpartition("}")
    if name != "bom":
        raise unreadable(file, "it is XML, but not a CycloneDX bill of materials.")
    prefix = f"{namespace}}}" if namespace else ""
    tree = {
        "metadata": {"component": next(iter(_xml_components(root.find(f"{prefix}metadata"), prefix)), None)},
        "components": list(_xml_components(root.find(f"{prefix}components"), prefix)),
    }
    return _cyclonedx(file, tree)


def _parse_xml(file: DependencyFile) -> ElementTree.Element:
    """Parse XML, and raise `InvalidRequest` (`files`) at any declaration of a document type or an entity."""

    def reject(*_: object) -> NoReturn:
        raise unreadable(file, "it declares a document type or an entity, which is not allowed.")

    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > XML_DEPTH_MAX:
            raise unreadable(file, f"its elements are nested more than {XML_DEPTH_MAX} deep.")
        builder.start(_tag(name), attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_tag(name))

    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartDoctypeDeclHandler = reject
    parser.EntityDeclHandler = reject
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(file.text.encode(), True)  # noqa: FBT003  # expat takes it by position only
    except (expat.ExpatError, UnicodeEncodeError) as error:
        raise unreadable(file, f"it is not valid XML: {error}.") from None
    return builder.close()


def _tag(name: str) -> str:
    return f"{{{name}" if "}" in name else name


def _xml_components(parent: ElementTree.Element | None, prefix: str) -> Iterator[dict[str, object]]:
    for element in parent.findall(f"{prefix}component") if parent is not None else ():
        fields: dict[str, object] = {
            name: (element.findtext(f"{prefix}{name}") or "").strip() for name in ("group", "name", "version", "purl")
        }
        yield {
            **fields,
            "type": element.get("type", ""),
            "components": list(_xml_components(element.find(f"{prefix}components"), prefix)),
        }


def _cyclonedx(file: DependencyFile, tree: Fields) -> Dependencies:
    metadata = tree.get("metadata")
    root = metadata.get("component") if isinstance(metadata, dict) else None
    packages = (
        _component(each) for each in _nested(file, tree.get("components"), 0) if _text(each, "type") in SOFTWARE
    )
    return Dependencies(
        packages=tuple(dict.fromkeys(package for package in packages if package)),
        product=_text(root, "purl") if isinstance(root, dict) else "",
    )


def _nested(file: DependencyFile, components: object, depth: int) -> Iterator[Fields]:
    if depth > DEPTH_MAX:
        raise unreadable(file, f"its components are nested more than {DEPTH_MAX} deep.")
    for component in _objects(components):
        yield component
        yield from _nested(file, component.get("components"), depth + 1)


def _component(component: Fields) -> str:
    name, group, version = _text(component, "name"), _text(component, "group"), _text(component, "version")
    return _text(component, "purl") or _named(f"{group}/{name}" if group else name, version)


def _named(name: str, version: str) -> str:
    return f"{name}@{version}" if name and version else name


def _spdx2(tree: Fields) -> Dependencies:
    packages = list(_objects(tree.get("packages")))
    described = set(_texts(tree.get("documentDescribes")))
    described |= {
        _text(each, "relatedSpdxElement")
        for each in _objects(tree.get("relationships"))
        if each.get("relationshipType") == "DESCRIBES"
    }
    names = {_text(each, "SPDXID"): _spdx2_package(each) for each in packages}
    roots = [name for spdx_id, name in names.items() if spdx_id in described]
    product = roots[0] if len(roots) == 1 and len(names) > 1 else ""
    listed = (name for name in names.values() if name and name != product)
    return Dependencies(packages=tuple(dict.fromkeys(listed)), product=product if product.startswith("pkg:") else "")


def _spdx2_package(package: Fields) -> str:
    for reference in _objects(package.get("externalRefs")):
        if reference.get("referenceType") == "purl":
            return _text(reference, "referenceLocator")
    return _named(_text(package, "name"), _text(package, "versionInfo"))


def _spdx3(tree: Fields) -> Dependencies:
    elements = list(_objects(tree.get("@graph")))
    roots = {
        name
        for each in elements
        if each.get("type") in ("SpdxDocument", "software_Sbom")
        for name in _texts(each.get("rootElement"))
    }
    names = {_text(each, "spdxId"): _spdx3_package(each) for each in elements if each.get("type") == "software_Package"}
    own = [name for spdx_id, name in names.items() if spdx_id in roots]
    product = own[0] if len(own) == 1 and len(names) > 1 else ""
    listed = (name for name in names.values() if name and name != product)
    return Dependencies(packages=tuple(dict.fromkeys(listed)), product=product if product.startswith("pkg:") else "")


def _spdx3_package(package: Fields) -> str:
    for identifier in _objects(package.get("externalIdentifier")):
        if identifier.get("externalIdentifierType") in ("packageUrl", "purl"):
            return _text(identifier, "identifier")
    name, version = _text(package, "name"), _text(package, "software_packageVersion")
    return _text(package, "software_packageUrl") or _named(name, version)


def _objects(value: object) -> Iterable[Fields]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else ()


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value.strip() if isinstance(value, str) else ""
