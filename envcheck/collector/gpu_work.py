"""The stages that load the GPUs, after all probes: micro-kernels, acceleration systems, a bench, a soak."""

import time

from . import probing
from .kernels import selection
from .kernels.campaign import patience
from .options import Options
from .run import BadTarget, environment, our_fault

_ONE_ROW = 900.0  # seconds that a row of a bench may take at the worst
_ONCE_MORE = 1.0  # seconds, after which a GPU's utilization no longer tells of the probes


def micro_kernels(run):
    from .kernels.campaign import Campaign

    options = run.request.kernels
    campaign = Campaign(options, run.documents, run.start, environment(), run.request.pynvml)
    devices = _choose(run, options, campaign)
    if devices is None:
        return
    run.work(campaign, lambda: campaign.run(devices, run.python, run.progress))
    if campaign.died:  # an Xid that it caused came after the probe had read the kernel's log
        run.documents["machine"] = probing.fresh(run, "kernel")
    campaign.name_stuck(run.sweep())


def systems(run):
    from .systems.running.runner import SystemsRunner

    runner = SystemsRunner(run, environment(), patience(run.documents["machine"]))
    devices = _choose(run, run.request.kernels, runner)
    if devices is not None:
        run.work(runner, lambda: runner.run(devices))
        runner.name_stuck(run.sweep())


def bench(run):
    from .bench.runner import BenchRunner

    work = run.request.work
    limit = max(work["seconds"] / 2, work["seconds"] - _ONE_ROW)
    asked = dict(work["bench"], limit=limit)
    if any(row["gpus"] for row in asked["rows"]):  # that were seen minutes ago
        run.documents["machine"] = probing.fresh(run, "nvml")
    devices, _why = choose(run, Options(busy_ok=bool(asked.get("busy_ok"))))
    runner = BenchRunner(asked, run, environment(), patience(run.documents["machine"]))
    _work(run, runner, lambda: runner.run(devices))


def soak(run):
    from .kernels import jobs
    from .soak.runner import SoakRunner

    asked, target = run.request.work["soak"], run.python["target"]
    run.documents["machine"] = probing.fresh(run, "nvml")  # seen minutes ago
    options = Options(gpus=asked["gpus"], busy_ok=asked["busy_ok"], products=False)
    try:
        devices, why = choose(run, options)
    except selection.NoSuchGpu as error:
        raise BadTarget(str(error))
    blas = jobs.cublas(run.documents["target"]) if asked["cublas"] and target else None
    for device in devices if asked["required"] and not blas else ():
        if not device.outcome:
            device.outcome, device.reason = "not-run", "the target has no cuBLAS"
    runner = SoakRunner(
        dict(asked, libraries=blas),
        run,
        target if blas else run.python["machine"],
    )
    _work(run, runner, lambda: runner.run(devices, why))


def _work(run, runner, work):
    """Work that the user can stop, keeping what is done."""
    run.worker = runner
    if run.stopped:
        runner.stop()
    run.work(runner, work)
    runner.name_stuck(run.sweep())


def _choose(run, options, part):
    """What ``choose`` says; None where envcheck itself failed to choose, as ``part`` then reports."""
    try:
        if run.devices is None:
            run.devices = choose(run, options)
        return run.devices
    except selection.NoSuchGpu as error:
        raise BadTarget(str(error))
    except Exception as error:
        part.failed(our_fault(error))
        return None


def choose(run, options):
    """(devices, why there are none). What looks busy is looked at again: the probes use GPUs, too."""
    environ, ours = environment(), run.ours
    chosen = selection.choose(run.documents["machine"], options, environ, ours)
    busy = [device for device in chosen[0] if device.outcome == "busy"]
    if busy:
        since = time.monotonic()
        while any(device.passing for device in busy) and time.monotonic() - since < _ONCE_MORE:
            run.progress([])
            time.sleep(0.02)
        chosen = selection.choose(probing.fresh(run, "nvml"), options, environ, ours)
    return chosen
