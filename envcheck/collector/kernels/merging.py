"""One LevelRun out of what the processes of a job reported."""

from ..facts import is_unavailable


def facts(job, reports):
    """The run's own facts. reports: a records.PartReport for every part; the first part's count most.

    The first is the one that ran as the user has it; of a later part, its outcome and the variables that
    it was started with are its own business.
    """
    run = dict(job.device.seed) if job.device else {}
    ours = job.parts[-1].environ if job.parts else {}
    for one in reversed(reports):
        known = dict(one.run)
        if one is not reports[0]:
            known.pop("outcome", None)
            known.pop("reason", None)
            known["variables"] = {
                name: value
                for name, value in known.get("variables", {}).items()
                if name not in ours
            }
        for name, value in known.items():
            if not is_unavailable(value) or name not in run:
                run[name] = value
    uuid = job.device.seed.get("uuid", "") if job.device else ""
    if uuid.startswith("MIG-"):  # libcuda up to 11.3 tells the whole GPU's
        run["uuid"] = uuid
    run.update(level=job.level, framework=job.framework)
    return run


def modes(job, reports, left_out):
    """The ModeRuns of what was asked for; what else a process reported is nobody's. left_out: {key: why}."""
    found = []
    for part, one in zip(job.parts, reports):
        for name in part.keys:
            if name in one.modes:
                found.append(one.modes[name])
            elif name in left_out:
                found.append(mode(name, outcome="not-run", reason=left_out[name]))
    return found


def mode(name, **fields):
    """A ModeRun of a records.key."""
    this, _, setting = name.partition("/")
    return dict(fields, mode=this, setting=setting)
