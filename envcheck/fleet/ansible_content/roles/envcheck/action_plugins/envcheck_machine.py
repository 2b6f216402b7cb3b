"""What is done with one machine of a roll-out, through whatever connection the inventory names.

install: look whether it is installed already; copy what is missing of the bundle; install envcheck from it in
a directory of its own; run `envcheck install`, a transaction that the doctor of that machine verifies; remove
the copied packages. rollback: go back to the version before. uninstall: remove what install brought, envcheck
itself included.

Nothing is needed there but a shell, sha256sum and a Python that the bundle is for. The scripts are in files/.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import tarfile
import time
from contextlib import suppress
from pathlib import Path
from resource import RLIMIT_AS, getrlimit, setrlimit
from shlex import quote
from urllib.parse import quote as quoted_name

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

FILES = Path(__file__).parent.parent / "files"
SMALL = 16_000_000  # bytes
LARGEST = 4_000_000  # bytes that a machine may answer with
MEMORY = 3 << 30  # bytes of address space: for a machine that sends without an end
GRACE = 60  # seconds in which what is ended there puts everything back as it was
_MARK = "@envcheck "
_END = re.compile(r"@envcheck end ([0-9]{1,3})\s*\Z")
_UNDONE = re.compile(r"^@envcheck (back|removed|nothing) ?(.*?)\r?$", re.MULTILINE)


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        # Ansible keeps all that a connection sends in memory; this process is one machine's alone.
        with suppress(ValueError):  # there is a lower limit already
            setrlimit(RLIMIT_AS, (MEMORY, getrlimit(RLIMIT_AS)[1]))
        args, task_vars = self._task.args, task_vars or {}
        self._host = str(task_vars.get("inventory_hostname", "machine"))
        self._lines = []
        self._logs = Path(str(args.get("logs") or "envcheck-logs")).expanduser()
        self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        # How many have failed in this run of ansible-playbook: a byte each, in a file that its workers share.
        self._failures = self._logs / (".failed-%d" % os.getppid())
        stopped = self._stopped(len(task_vars.get("ansible_play_hosts_all") or [self._host]))
        if stopped:
            return {"skipped": True, "msg": stopped, "envcheck": {"result": "not-begun"}}
        do, began = args.get("do", "install"), time.time()
        answer = {"result": "failed", "exit_code": 4}
        try:
            answer = self._install() if do == "install" else self._undo(do)
        except AnsibleConnectionFailure:
            raise
        except (AnsibleError, OSError) as error:
            answer["words"] = str(error)
        except MemoryError:
            answer["words"] = "it answers without an end"
        finally:
            failed = answer["result"] == "failed"
            if failed:
                with self._failures.open("ab", buffering=0) as file:
                    file.write(b"x")
        answer["seconds"] = round(time.time() - began, 1)
        self._keep_log(answer)
        return {
            "failed": failed,
            "changed": answer["result"] in ("installed", "back", "removed"),
            "msg": answer.get("words") or answer["result"],
            "envcheck": answer,
        }

    def _stopped(self, count):
        """Why this machine is not begun, "" if it is. count: the machines of the run."""
        allowed = str(self._task.args.get("max_fail", "0"))
        number = allowed[:-1] if allowed.endswith("%") else allowed
        if not (number.isascii() and number.isdecimal()):
            raise AnsibleError("envcheck_max_fail: %r is neither a number nor a share" % allowed)
        limit = int(number) if number == allowed else count * int(number) // 100
        failed = self._failures.stat().st_size if self._failures.exists() else 0
        return "not begun: %d failed, and %s may" % (failed, allowed) if failed > limit else ""

    def _keep_log(self, answer):
        name = quoted_name(self._host, safe="").replace("..", "%2E%2E")[:200]
        text = "\n".join([*self._lines, json.dumps(answer, indent=1), ""])
        path = self._logs / (name + ".log")
        with path.open("a", encoding="utf-8", errors="replace") as log:
            log.write(text)
        answer["log"] = str(path)

    # The machine.

    def _sh(self, text, what, *words, become=True, **given):
        """Run a script there, which its shell reads, with these words as "$@": what it wrote, and its exit
        status. It ends at the task's deadline, and with the connection: nothing goes on there by itself."""
        limits = {"RUN": secrets.token_hex(8), "LIMIT": int(self._task.timeout or 7200)}
        limits.update(GRACE=GRACE, LATE=_MARK + "late")
        guard = (FILES / "guard.sh").read_text(encoding="utf-8")
        begin = [_assigned(limits), guard, "(", "export ENVCHECK_RUN=$RUN", _assigned(given)]
        begin.append("set -- " + " ".join(map(quote, words)))
        end = [")", "code=$?; kill $envcheck_guard; wait $envcheck_guard 2>/dev/null", "echo"]
        script = "\n".join([*begin, text, *end, 'echo "%send $code"' % _MARK, ""])
        done = self._low_level_execute_command(
            "sh -s | head -c %d" % LARGEST,
            sudoable=become,
            in_data=script.encode("utf-8"),
            executable="/bin/sh",
        )
        stdout = done.get("stdout", "")
        ended = _END.search(stdout)
        output = {
            "stdout": stdout[: ended.start()] if ended else stdout,
            "stderr": "\n".join(filter(str.strip, done.get("stderr", "").splitlines())),
            "rc": int(ended.group(1)) if ended else None,
        }
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._lines.append("%s %s: status %s" % (stamp, what, output["rc"]))
        if what in ("install", "rollback", "uninstall", "copied") or output["rc"]:
            self._lines += [output[name][-200_000:].rstrip() for name in ("stderr", "stdout")]
        return output

    def _install(self):
        arguments = self._task.args
        bundle = Path(str(arguments.get("bundle") or "")).expanduser()
        try:
            index = json.loads((bundle / "bundle.json").read_bytes())
            listed = {name: file["sha256"] for name, file in index["files"].items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AnsibleError("envcheck_bundle: %s is no bundle: %s" % (bundle, error)) from None
        # The same bundle has the same place there, so that a copy that was cut off goes on.
        own = {name: value for name, value in listed.items() if name.startswith("envcheck/")}
        kit = "envcheck-%s-%s" % (index["envcheck"], _digest(own)[:12])
        place = self._place("%s/%s" % (arguments.get("staging"), _digest(listed)[:16]))
        words = [
            place if word == "BUNDLE" else word
            for word in map(str, arguments.get("arguments") or [])
        ]
        given = {"BUNDLE": place, "KIT": kit, "PYTHON": arguments.get("python") or ""}
        script = (FILES / "install.sh").read_text(encoding="utf-8")
        answer = _envelope(self._sh(script, "look", *words, FIRST="yes", **given))
        if answer is not None and answer["exit_code"] != 2:  # 2: the packages are no longer there
            return self._done(answer, 0)
        carried = self._carry(bundle, place, listed)
        done = self._sh(script, "install", *words, FIRST="", **given)
        answer = _envelope(done)
        if answer is None:
            code = 3 if done["rc"] in (1, 2) else 4
            return {"result": "failed", "exit_code": code, "words": _last(done)}
        return self._done(answer, carried, place)

    def _done(self, answer, carried, place=""):
        done = answer["result"] in ("installed", "already")
        if answer["result"] == "installed":
            lines = [answer["directory"], answer["version"], answer["kept"]]
            keep = 'printf "%s\\n" "$@" >"$HOME/.local/share/envcheck-fleet/rolled-out"'
            self._sh(keep, "remember", *lines)
        if place and done:
            self._sh('rm -f -- "$PLACE"/files/*', "clear", become=False, PLACE=place)
        return dict(answer, result=answer["result"] if done else "failed", carried=carried)

    def _place(self, folder):
        """The directory there, made by whoever logs in: become's user can read it."""
        script = 'umask 022; cd && mkdir -p "$FOLDER" && cd "$FOLDER" && pwd -P'
        done = self._sh(script, "place", become=False, FOLDER=folder)
        place = done["stdout"].strip().rpartition("\n")[2]
        if done["rc"] or not place.startswith("/"):
            raise AnsibleError("%s cannot be made there: %s" % (folder, _last(done)))
        return place

    def _carry(self, bundle, place, listed):
        """Copy the files that are not there, whole; how many bytes."""
        sums = "".join("%s  %s\n" % (value, name) for name, value in sorted(listed.items()))
        made = sorted({str(Path(name).parent) for name in listed})
        script = (
            'cd "$PLACE" && umask 022 && mkdir -p "$@" && printf %s "$SUMS" >.sums &&'
            ' { sha256sum -c .sums 2>/dev/null | grep -v ": OK$"; :; }'
        )
        done = self._sh(script, "compare", *made, become=False, PLACE=place, SUMS=sums)
        if done["rc"]:
            raise AnsibleError("%s: %s" % (place, _last(done)))
        missing = {line.rpartition(": ")[0] for line in done["stdout"].splitlines()} & {*listed}
        sizes = {name: (bundle / name).stat().st_size for name in ["bundle.json", *sorted(missing)]}
        small = io.BytesIO()  # they travel as one: each of its own takes a connection
        with tarfile.open(fileobj=small, mode="w") as tar:
            for name, size in sizes.items():
                if size < SMALL:
                    tar.add(str(bundle / name), arcname=name)
                else:
                    self._connection.put_file(str(bundle / name), place + "/" + name)
        self._low_level_execute_command(
            "umask 022; tar -xf - -C %s" % quote(place),
            sudoable=False,
            in_data=small.getvalue(),
            executable="/bin/sh",
        )
        script = 'cd "$PLACE" && chmod -R u+rwX,go+rX . && sha256sum -c --quiet .sums'
        done = self._sh(script, "copied", become=False, PLACE=place)
        if done["rc"] != 0:
            raise AnsibleError("the bundle was not copied whole: %s" % _last(done))
        return sum(sizes.values())

    def _undo(self, do):
        script = (FILES / (do + ".sh")).read_text(encoding="utf-8")
        done = self._sh(script, do, NAME=self._task.args.get("environment") or "")
        found = _UNDONE.search(done["stdout"])
        if not found:
            return {"result": "failed", "exit_code": done["rc"] or 4, "words": _last(done)}
        result, words = found.groups()
        if result == "removed":
            self._clear_staging()
        version = words if result == "back" else ""
        return {"result": result, "exit_code": 0, "words": words, "version": version}

    def _clear_staging(self):
        """The bundles' places, which belong to whoever logs in."""
        script = (
            'cd && cd "$FOLDER" 2>/dev/null || exit 0; rm -rf -- $(ls -d */.sums 2>/dev/null | cut -d/ -f1);'
            ' cd && rmdir -- "$FOLDER" 2>/dev/null; :'
        )
        self._sh(script, "clear", become=False, FOLDER=self._task.args.get("staging") or "")


def _last(done):
    """The last lines that say something."""
    lines = (done["stderr"].strip() or done["stdout"].strip() or "it says nothing").splitlines()
    return " ".join(line.strip() for line in lines[-2:])[:600]


def _digest(data):
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _envelope(done):
    """What `envcheck install --format json` answered, as far as it has that form; None where it has not."""
    text = done["stdout"].rpartition(_MARK + "answer")[2]
    begin = text.find("{")
    if begin < 0:
        return None
    try:
        answer = json.JSONDecoder().raw_decode(text[begin:])[0]
        environment, error = answer.get("environment") or {}, answer.get("error") or {}
        words = [error.get("sentence"), error.get("hint")]
        version, before = environment.get("version", ""), environment.get("before", "")
        health = (environment.get("record") or {}).get("health") or {}
        unproven = health.get("unproven") or []
        return {
            "result": _text(answer["result"]),
            "exit_code": min(max(int(answer["exit_code"]), 0), 255),
            "words": " ".join(_text(one) for one in words if one),
            "directory": _text(environment.get("directory", "")),
            "version": _text(version),
            "kept": _text("" if before == version else before),
            "verdict": _text(health.get("verdict", "")),
            "unproven": [_text(one) for one in unproven][:1000],
        }
    except Exception:  # it may be anything
        return None


def _text(value):
    """Raises TypeError for what is none."""
    return str.encode(value, "utf-8", "replace").decode("utf-8")[:2000]


def _assigned(given):
    return "\n".join("%s=%s" % (name, quote(str(value))) for name, value in given.items())
