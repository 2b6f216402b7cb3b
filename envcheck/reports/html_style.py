"""The CSS of all pages: quiet type, one accent, light and dark by what the reader's system asks for."""

from __future__ import annotations

_LIGHT = {
    "card": "#ffffff",
    "back": "#f6f7f9",
    "line": "#e1e5ea",
    "accent": "#0b57b0",
    "fail": "#b3261e",
    "fail-back": "#fdeeec",
    "warn": "#875000",
    "warn-back": "#fdf4e3",
    "pass": "#17692f",
    "pass-back": "#eaf6ed",
    "doubt": "#6d3d99",
    "doubt-back": "#f5eefb",
    "sign": "#ffffff",
}
_DARK = {
    "card": "#1b1f24",
    "back": "#121519",
    "line": "#2f353d",
    "accent": "#7ab7ff",
    "fail": "#ff938a",
    "fail-back": "#331d1c",
    "warn": "#f2b155",
    "warn-back": "#30261a",
    "pass": "#6fd08b",
    "pass-back": "#19291f",
    "doubt": "#d0a8f2",
    "doubt-back": "#2a2034",
    "sign": "#14171b",
}


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


STYLE = (
    f":root {{ {_variables(_LIGHT)} }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(_DARK)} }} }}\n"
    + """\
*, ::before, ::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 1rem; }
body { margin: 0; overflow-wrap: anywhere; background: var(--back); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; }
.page { max-width: 64rem; margin: 0 auto; padding: 2.25rem 1.25rem 3rem; }
.symbols { position: absolute; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; top: .5rem; z-index: 9;
  padding: .4rem .8rem; background: var(--card); border: 2px solid var(--accent); border-radius: 6px; }
a { color: var(--accent); text-underline-offset: .15em; text-decoration-thickness: 1px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
main:focus { outline: none; }
h1, h2, h3, h4 { line-height: 1.25; letter-spacing: -.008em; overflow-wrap: anywhere; text-wrap: balance; }
h1 { font-size: 1.85rem; font-weight: 650; letter-spacing: -.018em; margin: .1rem 0 .35rem; }
h2 { font-size: 1.25rem; font-weight: 640; margin: 0 0 .9rem; }
h3 { font-size: 1rem; font-weight: 640; margin: 1.6rem 0 .5rem; }
h4 { font-size: .94rem; font-weight: 620; margin: 1.2rem 0 .4rem; }
main > section { margin: 0 0 1.4rem; padding: 1.5rem 1.6rem 1.6rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px; }
section > section { margin-top: 1.8rem; }
section > :last-child { margin-bottom: 0; }
p, li, dd { overflow-wrap: anywhere; } p { margin: .5rem 0; } ul { padding-left: 1.2rem; margin: .5rem 0; }
.lead { color: var(--quiet); font-size: 1.02rem; margin: 0; max-width: 52rem; } .small { font-size: .88rem; }
.eyebrow { color: var(--quiet); font-size: .8rem; letter-spacing: .04em; margin: 0; display: flex;
  flex-wrap: wrap; gap: .2rem 1.2rem; justify-content: space-between; }
.eyebrow b { color: var(--accent); font-weight: 650; }
header { margin-bottom: 1.5rem; } footer { color: var(--quiet); font-size: .85rem; padding: .4rem 0; }
nav.contents { margin: 0 0 1.4rem; font-size: .92rem; }
nav.contents ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: .1rem 1.5rem; }
nav.contents a { display: inline-block; padding: .25rem 0; text-decoration: none; }
nav.contents a:hover { text-decoration: underline; }
.count { color: var(--quiet); font-variant-numeric: tabular-nums; font-size: .85em; margin-left: .25em; }
.note { border-left: 3px solid var(--warn); padding: .5rem .9rem; background: var(--warn-back);
  border-radius: 0 8px 8px 0; margin: 1rem 0 0; }
.verdict { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: .2rem 1rem; align-items: start;
  padding: 1.15rem 1.4rem; border-radius: 12px; border: 1px solid; margin: 1.3rem 0 0; }
.verdict .m { width: 2.1rem; height: 2.1rem; margin: .1rem 0 0; }
.verdict .word { font-size: 1.3rem; font-weight: 660; letter-spacing: -.012em; margin: 0; }
.verdict p, .verdict ul { color: var(--ink); margin: .15rem 0 0; }
.verdict.fail { color: var(--fail); background: var(--fail-back); }
.verdict.warn { color: var(--warn); background: var(--warn-back); }
.verdict.pass { color: var(--pass); background: var(--pass-back); }
.verdict.could-not-run { color: var(--doubt); background: var(--doubt-back); }
.verdict.skipped { color: var(--quiet); background: var(--card); }
.verdict.fail, .verdict.warn, .verdict.pass, .verdict.could-not-run, .verdict.skipped {
  border-color: color-mix(in srgb, currentColor 35%, transparent); }
.m { width: 1em; height: 1em; vertical-align: -.13em; margin-right: .45em; flex: none; fill: currentColor; }
.m-body { fill: inherit; } .m-sign, .m-dash { fill: none; stroke: var(--sign); stroke-width: 1.7;
  stroke-linecap: round; stroke-linejoin: round; } .m-dash { stroke: currentColor; }
.state { font-weight: 620; white-space: nowrap; }
.fail { color: var(--fail); } .warn { color: var(--warn); } .pass { color: var(--pass); }
.could-not-run { color: var(--doubt); } .skipped { color: var(--quiet); } .quiet { color: var(--quiet); }
p.fail, p.warn, p.could-not-run, span.fail, span.warn, span.could-not-run, span.pass { font-weight: 620; }
.wide { overflow-x: auto; margin: .6rem 0; }
.wide svg.plot { min-width: 40rem; max-width: 54rem; width: 100%; display: block; margin: .6rem 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .94rem; }
caption { text-align: left; color: var(--quiet); padding: 0 0 .4rem; }
th, td { padding: .38rem 1.1rem .38rem 0; text-align: left; vertical-align: top; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: 0; } tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--quiet); font-weight: 560; font-size: .86rem; border-bottom-color: var(--grid); }
tbody th { font-weight: 560; }
td.wraps, th.wraps { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
th.right, td.right { text-align: right; }
dl.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .9rem 1.6rem;
  margin: 1rem 0 0; } dl.facts > div { min-width: 0; }
dt { color: var(--quiet); font-size: .84rem; } dd { margin: 0; }
code, pre, .code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .9em; } code { overflow-wrap: anywhere; }
pre { margin: .5rem 0; padding: .75rem .95rem; background: var(--band); border-radius: 8px;
  white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.5; font-size: .9rem; }
pre code { font-size: 1em; }
.copied { position: relative; } .copied pre { padding-right: 5.2rem; }
button { font: inherit; font-size: .82rem; cursor: pointer; color: var(--accent); background: var(--card);
  border: 1px solid var(--grid); border-radius: 6px; padding: .16rem .6rem; }
button:hover { border-color: var(--accent); }
.copied button { position: absolute; top: .42rem; right: .5rem; }
summary { cursor: pointer; border-radius: 6px; overflow-wrap: anywhere; }
details > summary:hover { color: var(--accent); } details[open] > summary { margin-bottom: .3rem; }
@media (min-width: 78rem) {
  .page { max-width: 80rem; display: grid; grid-template-columns: 12rem minmax(0, 1fr); column-gap: 2.5rem; }
  header, footer { grid-column: 1 / -1; }
  main { grid-column: 1 / -1; } nav + main { grid-column: 2; }
  nav.contents { position: sticky; top: 1.2rem; align-self: start; }
  nav.contents ul { flex-direction: column; gap: .1rem; } nav.contents a { display: block; }
}
@media (max-width: 36rem) {
  .page { padding: 1.2rem .75rem 2rem; } main > section { padding: 1.1rem 1rem; border-radius: 10px; }
  h1 { font-size: 1.5rem; } .verdict { padding: .9rem 1rem; } .verdict .m { width: 1.6rem; height: 1.6rem; }
}
@media print {
  :root { color-scheme: light; } body { background: none; font-size: 10.5pt; }
  .page { display: block; max-width: none; padding: 0; } nav.contents, .skip, button { display: none; }
  main > section { border: 0; padding: 0 0 .6rem; break-inside: auto; }
  h2, h3, h4, summary { break-after: avoid; } tr, li, pre, svg.plot, .keep { break-inside: avoid; }
  .wide { overflow: visible; } .wide svg.plot { min-width: 0; } td, th { white-space: normal; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .copied pre { padding-right: .95rem; }
}
"""
)
