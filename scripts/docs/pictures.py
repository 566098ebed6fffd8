#!/usr/bin/env python3
"""Draws the pictures of `docs/concepts/` from the text sources in `scripts/docs/pictures/`.

    pictures.py          writes every picture

A source has one command on each line. Columns and rows are places of a grid, from 0 on, and may be fractions:

    says "TEXT"                                    what the picture shows, for readers who cannot see it
    box NAME COLUMN ROW KIND "TITLE" ["NOTE"]      a box, in the colour of its kind
    frame "TITLE" BOX BOX ...                      a dashed frame around boxes
    arrow FROM TO ["TEXT"]                         from box to box
    maybe FROM TO ["TEXT"]                         the same, dashed
"""

from __future__ import annotations

import dataclasses
import pathlib
import shlex
import sys
from xml.sax.saxutils import escape, quoteattr

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "scripts/docs/pictures"
PICTURES = ROOT / "docs/concepts"

COLUMN, ROW = 220, 96
WIDTH, HEIGHT = 150, 52
MARGIN = 16
FRAME = 16
FILLS = {
    "client": "#f1f5f9",
    "edge": "#dbeafe",
    "session": "#dcfce7",
    "worker": "#fef9c3",
    "store": "#fee2e2",
    "plain": "#f8fafc",
    "lost": "#e2e8f0",
}
STYLE = """
    .ground { fill: #ffffff }
    .text { fill: #0f172a }
    .label { fill: #475569; stroke: #ffffff; stroke-width: 5px; paint-order: stroke }
    .frame { fill: none; stroke: #94a3b8; stroke-dasharray: 6 4 }
    .line { fill: none; stroke: #64748b; stroke-width: 1.4 }
    .maybe { stroke-dasharray: 5 4 }
    .lost { opacity: 0.6 }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #0d1117 }
      .label { fill: #cbd5e1; stroke: #0d1117 }
    }"""


Bounds = tuple[float, float, float, float]
"""Left, top, right and bottom."""


class Mistake(Exception):
    """A source that cannot be drawn."""


@dataclasses.dataclass
class Box:
    """A box, by its centre."""

    x: float
    y: float
    kind: str
    title: str
    note: str

    def border(self, x: float, y: float) -> tuple[float, float]:
        """The point at which the line from the centre to this point leaves the box."""
        across, down = x - self.x, y - self.y
        scale = min(
            (WIDTH / 2 + 3) / abs(across) if across else float("inf"),
            (HEIGHT / 2 + 3) / abs(down) if down else float("inf"),
        )
        return self.x + across * scale, self.y + down * scale


def found(boxes: dict[str, Box], name: str) -> Box:
    if name not in boxes:
        raise Mistake(f"there is no box {name}")
    return boxes[name]


def shown(text: str, x: float, y: float, kind: str, size: int = 15) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" font-size="{size}">{escape(text)}</text>'


def frame(around: list[Box], title: str) -> tuple[Bounds, str, str]:
    """A frame around boxes: bounds, frame and title."""
    left, top = min(box.x for box in around) - WIDTH / 2 - FRAME, min(box.y for box in around) - HEIGHT / 2 - FRAME - 6
    right, bottom = max(box.x for box in around) + WIDTH / 2 + FRAME, max(box.y for box in around) + HEIGHT / 2 + FRAME
    drawn = f'<rect class="frame" x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}" rx="8"/>'
    return (left, top, right, bottom), drawn, shown(title, (left + right) / 2, top + 4, "label", 12)


def line(boxes: dict[str, Box], start: str, end: str, text: str, kind: str) -> tuple[str, str]:
    """A line between boxes, and its text."""
    one, other = found(boxes, start), found(boxes, end)
    (x1, y1), (x2, y2) = one.border(other.x, other.y), other.border(one.x, one.y)
    path = f'<path class="line{kind}" d="M{x1:.1f} {y1:.1f} {x2:.1f} {y2:.1f}" marker-end="url(#arrow)"/>'
    return path, shown(text, (x1 + x2) / 2, (y1 + y2) / 2 + (-6 if y1 == y2 else 4), "label", 12) if text else ""


def draw(source: str) -> str:
    """Draws a source."""
    says = ""
    held: list[Bounds] = []
    boxes: dict[str, Box] = {}
    frames, lines, texts = [], [], []
    for number, written in enumerate(source.splitlines(), 1):
        try:
            match shlex.split(written, comments=True):
                case []:
                    pass
                case ["says", text]:
                    says = text
                case ["box", name, column, row, kind, title, *note] if kind in FILLS and len(note) < 2:
                    x, y = float(column) * COLUMN, float(row) * ROW
                    boxes[name] = Box(x, y, kind, title, "".join(note))
                    held.append((x - WIDTH / 2, y - HEIGHT / 2, x + WIDTH / 2, y + HEIGHT / 2))
                case ["frame", title, *names] if names:
                    bounds, drawn, text = frame([found(boxes, name) for name in names], title)
                    held.append(bounds)
                    frames.append(drawn)
                    texts.append(text)
                case [("arrow" | "maybe") as kind, start, end, *text] if len(text) < 2:
                    path, label = line(boxes, start, end, "".join(text), " maybe" if kind == "maybe" else "")
                    lines.append(path)
                    texts.append(label)
                case _:
                    raise Mistake("this is no command")
        except (Mistake, ValueError) as mistake:
            raise Mistake(f"line {number}: {mistake}: {written}") from mistake
    if not says or not held:
        raise Mistake("say what the picture shows (says), and draw a box")
    for box in boxes.values():
        dim = " lost" if box.kind == "lost" else ""
        lines.append(
            f'<rect class="line{dim}" style="fill: {FILLS[box.kind]}" x="{box.x - WIDTH / 2:g}" y="{box.y - HEIGHT / 2:g}" '
            f'width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        )
        texts.append(shown(box.title, box.x, box.y + (-2 if box.note else 5), "text"))
        if box.note:
            texts.append(shown(box.note, box.x, box.y + 16, "text", 11))
    body = "\n  ".join(part for part in [*frames, *lines, *texts] if part)
    left, top = min(bounds[0] for bounds in held) - MARGIN, min(bounds[1] for bounds in held) - MARGIN
    width, height = max(bounds[2] for bounds in held) + MARGIN - left, max(bounds[3] for bounds in held) + MARGIN - top
    size = f'viewBox="{left:g} {top:g} {width:g} {height:g}" width="{width:g}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" role="img" aria-label={quoteattr(says)}>
  <style>{STYLE}
  </style>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
      <path d="M0 0 10 5 0 10z" fill="#64748b"/>
    </marker>
  </defs>
  <rect class="ground" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="8"/>
  <g text-anchor="middle">
  {body}
  </g>
</svg>
"""


def pictures() -> dict[pathlib.Path, str]:
    """All pictures by file."""
    made = {}
    for source in sorted(SOURCES.glob("*.txt")):
        try:
            made[PICTURES / f"{source.stem}.svg"] = draw(source.read_text(encoding="utf-8"))
        except Mistake as mistake:
            raise Mistake(f"{source.relative_to(ROOT)}: {mistake}") from mistake
    return made


def main() -> int:
    try:
        for file, picture in pictures().items():
            file.write_text(picture, encoding="utf-8")
    except Mistake as mistake:
        print(f"pictures.py: {mistake}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
