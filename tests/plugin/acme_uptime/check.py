from envcheck.checks.registry import Area, check
from envcheck.facts.view import facts_of
from envcheck.findings.model import Finding, Remedy

AREA = Area(name="acme", title="ACME's own", position=200)


@check(
    "ACME-001",
    title="The machine was restarted this year",
    problem="was not restarted this year",
    about="Updates of the kernel and of the GPU's firmware wait for it.",
    sources=["ACME's handbook"],
)
def restarted_this_year(view):
    days = facts_of(view.machine.extensions.get("acme_uptime"), "the uptime")["days"]
    if days > 365:
        yield Finding(
            "fail", f"It has been up for {days} days.", remedy=Remedy("Restart it.", ["who"])
        )
