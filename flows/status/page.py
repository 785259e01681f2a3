"""The status as one static page: the same lines as on the screen, and the windows as a table. No script, no network."""

from __future__ import annotations

from html import escape

from flows.status.gather import Status
from flows.status.screen import Line, lines
from flows.status.weeks import COLUMNS

STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5a646e; --line: #d6dbe0; --ground: #fff; --panel: #f5f7f9;
  --green: #1a7f37; --amber: #9a6700; --red: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebee; --soft: #a3adb7; --line: #3a434c; --ground: #15191d;
  --panel: #1e242a; --green: #5fd07f; --amber: #e3b341; --red: #ff8a80; } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--ground); }
pre { background: var(--panel); padding: 1rem; border-radius: 8px; overflow-x: auto;
  font: 14px/1.45 ui-monospace, monospace; }
.green { color: var(--green); } .amber { color: var(--amber); } .red { color: var(--red); } .dim { color: var(--soft); }
.bold { font-weight: 700; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); font-weight: 400; }
thead th { color: var(--soft); } th:first-child { text-align: left; font-weight: 600; }
"""


def page(status: Status) -> str:
    """The page as HTML."""
    title = f"NEST {status.week.label}" if status.week else "NEST"
    screen = "\n".join(_line(line) for line in lines(status))
    head = "".join(f"<th>{escape(title)}</th>" for title, _, _ in COLUMNS)
    rows = []
    for week in reversed(status.weeks):
        cells = "".join(
            f"<td>{'-' if (n := week.counts.get(name)) is None else f'{n:,}'}</td>" for name, _, _ in COLUMNS
        )
        revision = escape(str(week.snapshot.get("revision", "-")))
        rows.append(f"<tr><th>{escape(week.label + week.pilot)}</th>{cells}<td>{revision}</td></tr>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
        f"<h1>{escape(title)}</h1>\n<pre>{screen}</pre>\n<h2>Windows</h2>\n"
        f"<table><thead><tr><th>window</th>{head}<th>revision</th></tr></thead><tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table>\n</body></html>\n"
    )


def _line(line: Line) -> str:
    return "".join(
        f'<span class="{part.colour}">{escape(part.text)}</span>' if part.colour else escape(part.text) for part in line
    ).rstrip()
