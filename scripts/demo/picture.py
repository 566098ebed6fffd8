"""Draws terminals as an animated SVG that repeats."""

from __future__ import annotations

import dataclasses
from xml.sax.saxutils import escape

FONT = 13
LINE = 19
MARGIN = 14
TITLE = 26
WIDTH = 840
PAUSE_SECONDS = 5
"""For how long the end is shown."""

STYLE = """
text { font: %dpx ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #24292f; white-space: pre }
.title { font: 12px system-ui, sans-serif; fill: #57606a }
.typed { font-weight: 600 }
.pane { fill: #f6f8fa; stroke: #d0d7de }
.passing { visibility: hidden }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .title { fill: #8d96a0 }
  .pane { fill: #151b23; stroke: #3d444d }
}
@media (prefers-reduced-motion: reduce) { text { animation: none !important } }
""" % FONT


@dataclasses.dataclass
class Line:
    """A line; `kind` is a class of the style."""

    text: str
    kind: str = ""


@dataclasses.dataclass
class Shown:
    """A line that is shown from a time until another replaces it."""

    line: Line
    since: float


class Pane:
    """A terminal: rows, each with its lines over time."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: list[list[Shown]] = []
        self.changing = False

    def show(self, line: Line, at: float) -> None:
        self.rows.append([Shown(line, at)])
        self.changing = False

    def change(self, line: Line, at: float) -> None:
        """Replaces the last row if it is not settled, or adds a row."""
        if self.changing:
            self.rows[-1].append(Shown(line, at))
        else:
            self.show(line, at)
        self.changing = True

    def settle(self, line: Line, at: float) -> None:
        """As `change`, but settles the row."""
        self.change(line, at)
        self.changing = False


def draw(panes: list[Pane], seconds: float) -> str:
    """Draws the terminals for `seconds`."""
    whole = seconds + PAUSE_SECONDS
    keyframes: list[str] = []
    shapes: list[str] = []
    top = MARGIN / 2
    for pane in panes:
        height = TITLE + LINE * len(pane.rows) + MARGIN
        shapes.append(f'<rect class="pane" x="1" y="{top:g}" width="{WIDTH - 2}" height="{height:g}" rx="6"/>')
        shapes.append(f'<text class="title" x="{MARGIN}" y="{top + 18:g}">{escape(pane.title)}</text>')
        for number, row in enumerate(pane.rows):
            y = top + TITLE + LINE * (number + 0.8)
            for shown, after in zip(row, [*row[1:], None], strict=True):
                name = f"k{len(keyframes)}"
                keyframes.append(frames(name, shown.since / whole, after.since / whole if after else None))
                kind = f"{shown.line.kind} passing" if after else shown.line.kind
                shapes.append(
                    f'<text class="{kind.strip()}" x="{MARGIN}" y="{y:g}" '
                    f'style="animation: {name} {whole:.1f}s steps(1, end) infinite">{escape(shown.line.text)}</text>'
                )
        top += height + MARGIN / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:g}" width="{WIDTH}" height="{top:g}">\n'
        f"<style>{STYLE}{''.join(keyframes)}</style>\n" + "\n".join(shapes) + "\n</svg>\n"
    )


def frames(name: str, since: float, until: float | None) -> str:
    """Keyframes of a line that is visible between these fractions of the whole time."""
    seen = f"{since:.2%} {{ visibility: visible }}"
    gone = f"{until:.2%} {{ visibility: hidden }}" if until else "100% { visibility: visible }"
    return f"@keyframes {name} {{ 0% {{ visibility: hidden }} {seen} {gone} }}\n"
