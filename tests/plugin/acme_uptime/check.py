from envcheck.checks.registry import Area, check
from envcheck.facts.view import facts_of
from envcheck.findings.causes import Cause

AREA = Area(name="acme", title="ACME's own", position=200)

UP = Cause("up", "fail", "needs a restart", "It has been up for {days} days.", "Restart.", ["who"])


@check(
    "ACME-001",
    title="The machine was restarted this year",
    causes=[UP],
    about="Updates of the kernel and of the GPU's firmware wait for it.",
    sources=["ACME's handbook"],
)
def restarted_this_year(view):
    days = facts_of(view.machine.extensions.get("acme_uptime"), "the uptime")["days"]
    if days > 365:
        yield UP.found(days=days)
