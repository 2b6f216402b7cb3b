"""The CSS that a machine's page has beyond that of all pages: of its picture, bars and tree of facts."""

from __future__ import annotations

STYLE = """\
.wide svg.plot.machine { min-width: 40rem; max-width: 100%; height: auto; width: auto; margin: 0 auto; }
@media (max-width: 40rem) { .wide svg.plot.machine { max-width: none; } }
.machine text { font-size: 12px; } .machine .name { font-size: 13px; font-weight: 640; }
.machine .quiet, .machine .label { font-size: 11px; } .machine .small { font-size: 10.5px; }
.machine .label { font-weight: 560; }
.machine rect { stroke: var(--grid); fill: var(--card); }
.machine .node { fill: var(--band); } .machine .bridge { fill: var(--back); }
.machine .card.nic { fill: var(--back); } .machine .chip { fill: var(--band); stroke: none; }
.machine .fabric { fill: var(--fabric); stroke: none; } .machine .switch { fill: var(--card); }
.machine .wire { fill: none; stroke: var(--wire); }
.machine .wire.thick { stroke-width: 3.2; } .machine .wire.nvlink { stroke: var(--accent); }
.machine .wire.fail, .machine rect.fail { stroke: var(--fail); }
.machine .wire.warn, .machine rect.warn { stroke: var(--warn); }
.machine .wire.fail, .machine .wire.warn { stroke-dasharray: 7 4; }
.machine rect.fail { stroke-width: 2; fill: var(--fail-back); }
.machine rect.warn { stroke-width: 2; fill: var(--warn-back); }
.machine .gone { stroke-dasharray: 4 4; } .machine rect.gone:not(.fail):not(.warn) { fill: none; }
.machine text.fail { fill: var(--fail); font-weight: 640; }
.machine text.warn { fill: var(--warn); font-weight: 640; }
.machine .fault.fail { fill: var(--fail); } .machine .fault.warn { fill: var(--warn); }

:root { --fabric: #e3eefb; --wire: #8b949e; }
@media (prefers-color-scheme: dark) { :root { --fabric: #1c2c40; --wire: #6b7580; } }
section > details { margin: .4rem 0; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; color: var(--quiet); font-size: .86rem;
  margin: .4rem 0 .6rem; }
.problem { padding: 1.1rem 0 1.2rem; border-top: 1px solid var(--line); }
.problem:first-of-type { border-top: 0; padding-top: 0; }
.problem h3 { margin: 0 0 .35rem; font-size: 1.05rem; }
.problem h3 .code { color: var(--quiet); font-weight: 520; margin-left: .5em; }
.problem > :last-child, .problem .copied:last-child pre { margin-bottom: 0; }
.problem:last-child { padding-bottom: 0; }
.evidence { margin: .6rem 0; padding: 0 0 0 .9rem; border-left: 2px solid var(--line); list-style: none; }
.evidence li { margin: .15rem 0; } .evidence code { color: var(--quiet); }
.evidence .from { color: var(--quiet);
  font-size: .88em; }
.todo { margin: .8rem 0 .3rem; } .todo b { font-weight: 640; }
svg.bar { width: 7.5rem; height: .62rem; vertical-align: .02em; margin-right: .6rem; }
svg.bar .of { fill: var(--band); } svg.bar .is { fill: var(--accent); }
svg.bar .is.warn { fill: var(--warn); }
svg.bar .is.fail { fill: var(--fail); }
.level { margin: 1.1rem 0 .2rem; }
.areas details { border-top: 1px solid var(--line); padding: .55rem 0; }
.areas details:last-of-type { border-bottom: 1px solid var(--line); }
.areas summary .told { color: var(--quiet); margin-left: .5em; } .areas summary .name { font-weight: 600; }
.areas summary .state { display: inline-block; min-width: 8.2em; }
.facts-tree details { padding: .3rem 0 .3rem; } .facts-tree > details { border-top: 1px solid var(--line); }
.facts-tree table { font-size: .88rem; } .facts-tree td, .facts-tree tbody th { white-space: normal; }
.facts-tree td, .facts-tree tbody th { padding-top: .16rem; padding-bottom: .16rem; }
.facts-tree tbody th { font-weight: 450; color: var(--quiet); }
.facts-tree .in { padding-left: 1rem; border-left: 2px solid var(--line); margin-left: .15rem; }
"""
