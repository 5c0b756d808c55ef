"""The few shapes that the pictures are made of.

Promise: every text is escaped, and characters that XML forbids are replaced. A picture has a title and a description,
and needs no script, font or address from elsewhere.
"""

from collections.abc import Iterable
from xml.sax.saxutils import escape

EDGE = 24  # pixels around a picture
LETTER_WIDTH = 7.3  # about, at 13 pixels
STYLE = """
text{font:13px system-ui,sans-serif;fill:#1b1f24}
.small{font-size:11px}.faint{fill:#57606a}.head{font-weight:600;font-size:15px}
.paper{fill:#ffffff}.box{fill:#f6f8fa;stroke:#8c959f}.in-force{fill:#dafbe1;stroke:#1a7f37}.superseded{fill:#f6f8fa;stroke:#8c959f}
.struck{text-decoration:line-through;fill:#57606a}.line{stroke:#57606a;fill:none}.grid{stroke:#d0d7de}
.tip{fill:#57606a}.one{fill:#0969da}.two{fill:#bf8700}.three{fill:#1a7f37}.four{fill:#8250df}.bar{fill:#8c959f}
.one,.two,.three,.four{fill-opacity:.75}
.current{fill:#1a7f37}.mark{stroke:#cf222e;fill:none}.dashed{stroke-dasharray:5 4}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.faint,.struck{fill:#9198a1}.paper{fill:#0d1117}.box,.superseded{fill:#161b22;stroke:#6e7681}
.in-force{fill:#0f2d1a;stroke:#3fb950}.line{stroke:#9198a1}.grid{stroke:#30363d}.tip{fill:#9198a1}
.one{fill:#58a6ff}.two{fill:#d29922}.three,.current{fill:#3fb950}.four{fill:#bc8cff}.bar{fill:#6e7681}.mark{stroke:#f85149}}
""".replace("\n", "")


def text(x: float, y: float, content: str, *classes: str, anchor: str = "start") -> str:
    """Return a text with its base line at `y`."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{" ".join(classes)}" text-anchor="{anchor}">{clean(content)}</text>'


def heading(title: str, note: str, title_letters: int, note_letters: int) -> list[str]:
    """Return the title of a picture and a line below it, each with at most this many letters."""
    return [
        text(EDGE, 32, truncate(title, title_letters), "head"),
        text(EDGE, 52, truncate(note, note_letters), "small", "faint"),
    ]


def box(x: float, y: float, width: float, height: float, style: str, tip: str = "", *, radius: float = 6) -> str:
    """Return a box; `tip` is shown when the pointer rests on it."""
    inside = f"<title>{clean(tip)}</title>" if tip else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{radius:g}" '
        f'class="{style}">{inside}</rect>'
    )


def line(x1: float, y1: float, x2: float, y2: float, style: str = "line", *, arrow: bool = False) -> str:
    """Return a straight line, with an arrowhead at its end if wanted."""
    head = ' marker-end="url(#tip)"' if arrow else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"{head}/>'


def dot(x: float, y: float, style: str, tip: str) -> str:
    """Return a point of a plot; `tip` is shown when the pointer rests on it."""
    title = f"<title>{clean(tip)}</title>"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{style}" fill-opacity="0.7">{title}</circle>'


def picture(width: float, height: float, *, title: str, description: str, parts: Iterable[str]) -> str:
    """Return a complete picture of this size, in pixels."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-labelledby="title description">'
        f'<title id="title">{clean(title)}</title><desc id="description">{clean(description)}</desc>'
        f"<style>{STYLE}</style>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>{"".join(parts)}</svg>\n'
    )


def clean(content: str) -> str:
    """Escape a text for XML. Line breaks, forbidden characters and those that change direction become spaces."""
    return escape("".join(char if char.isprintable() else " " for char in content), {'"': "&quot;"})


def truncate(content: str, letters: int) -> str:
    """Return the text with at most this many letters; an ellipsis marks the cut."""
    return content if len(content) <= letters else f"{content[: letters - 1].rstrip()}…"


def text_width(content: str) -> float:
    """Estimate the width of a text in pixels. East Asian letters count twice."""
    return LETTER_WIDTH * sum(2 if ord(char) > 0x2E80 else 1 for char in content)
