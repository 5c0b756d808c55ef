"""The few shapes that the pictures are made of.

Promise: every text is escaped, and characters that XML forbids are left out; a picture has a
title and a description, and needs no script, font or address from elsewhere.
"""

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

FONT = 13
CHAR = 7.3  # the width of a letter of the font, about
STYLE = """
text{font:13px system-ui,sans-serif;fill:#1b1f24}
.small{font-size:11px}.faint{fill:#57606a}.head{font-weight:600;font-size:15px}
.paper{fill:#ffffff}.box{fill:#f6f8fa;stroke:#8c959f}.force{fill:#dafbe1;stroke:#1a7f37}.void{fill:#f6f8fa;stroke:#8c959f}
.struck{text-decoration:line-through;fill:#57606a}.line{stroke:#57606a;fill:none}.grid{stroke:#d0d7de}
.tip{fill:#57606a}.one{fill:#0969da}.two{fill:#bf8700}.three{fill:#1a7f37}.four{fill:#8250df}.bar{fill:#8c959f}
.one,.two,.three,.four{fill-opacity:.75}
.held{fill:#1a7f37}.mark{stroke:#cf222e;fill:none}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.faint,.struck{fill:#9198a1}.paper{fill:#0d1117}.box,.void{fill:#161b22;stroke:#6e7681}
.force{fill:#0f2d1a;stroke:#3fb950}.line{stroke:#9198a1}.grid{stroke:#30363d}.tip{fill:#9198a1}
.one{fill:#58a6ff}.two{fill:#d29922}.three,.held{fill:#3fb950}.four{fill:#bc8cff}.bar{fill:#6e7681}.mark{stroke:#f85149}}
""".replace("\n", "")


def text(x: float, y: float, said: str, *classes: str, anchor: str = "start") -> str:
    """Words, with their base line at `y`."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{" ".join(classes)}" text-anchor="{anchor}">{clean(said)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, tip: str = "", *, round_: float = 6) -> str:
    """A box; `tip` is told where the pointer rests."""
    inside = f"<title>{clean(tip)}</title>" if tip else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{round_:g}" '
        f'class="{kind}">{inside}</rect>'
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "line", *, arrow: bool = False) -> str:
    """A straight line; with an arrow's head at its end if wanted."""
    head = ' marker-end="url(#tip)"' if arrow else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"{head}/>'


def dot(x: float, y: float, kind: str, tip: str) -> str:
    """A point of a plot."""
    told = f"<title>{clean(tip)}</title>"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{kind}" fill-opacity="0.7">{told}</circle>'


def picture(width: float, height: float, *, title: str, description: str, parts: Iterable[str]) -> str:
    """A whole picture of this size."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-labelledby="title description">'
        f'<title id="title">{clean(title)}</title><desc id="description">{clean(description)}</desc>'
        f"<style>{STYLE}</style>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>{"".join(parts)}</svg>\n'
    )


def clean(said: str) -> str:
    """Words as XML can hold them: escaped, on one line, without characters that it forbids or that turn text."""
    return escape("".join(char if char.isprintable() else " " for char in said), {'"': "&quot;"})


def cut(said: str, letters: int) -> str:
    """At most so many letters."""
    return said if len(said) <= letters else f"{said[: letters - 1].rstrip()}…"


def wide(lines: Sequence[str], least: float = 0) -> float:
    """How much room the longest of some lines takes, about; East Asian letters take two."""
    return max([least, *(CHAR * sum(2 if ord(char) > 0x2E80 else 1 for char in one) for one in lines)])
