"""Tells envcheck what a playbook does: a line of JSON an event, in the file that ENVCHECK_EVENTS names.

Nothing else is written anywhere. Output of a machine or ssh passes without the secrets of the inventory.
"""

from __future__ import annotations

import json
import os
from functools import partialmethod

from ansible.plugins.callback import CallbackBase
from ansible.release import __version__

DOCUMENTATION = """
name: envcheck_events
type: stdout
short_description: tells envcheck what a playbook does
description: A line of JSON an event, in the file that ENVCHECK_EVENTS names. Nothing goes to the terminal.
"""

PLACES = ("rack", "switch", "image")
LONGEST = 2000  # characters of such output
LONGEST_LINE = 8_000_000  # bytes of an event: with all that a machine says of its Pythons
# Variables whose values are shown to nobody.
_SECRET = ("pass", "pwd", "secret", "token", "credential", "vault", "private", "api_key", "apikey")
_VAULTED = ("AnsibleVaultEncryptedUnicode", "EncryptedString")
_MASK = "***"


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "envcheck_events"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._play = None
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(os.environ["ENVCHECK_EVENTS"], flags, 0o600)

    def set_options(self, *args, **kwargs):
        pass  # it has none

    def _tell(self, event, **what):
        data = _line(event, what)
        if len(data) > LONGEST_LINE:
            data = _line(event, dict(what, answer="", words="what it answered is too long"))
        while data:
            data = data[os.write(self._file, data) :]

    def v2_playbook_on_start(self, playbook):
        self._tell("started", version=__version__)

    def v2_playbook_on_no_hosts_matched(self):
        self._tell("no-hosts")

    def v2_playbook_on_play_start(self, play):
        self._play = play
        manager = play.get_variable_manager()
        hosts = manager._inventory.get_hosts(play.hosts, order=play.order)
        for host in hosts:
            groups = {str(group.name) for group in host.get_groups()} - {"all", "ungrouped"}
            variables = manager.get_vars(play=play, host=host, include_hostvars=False)
            found = {name: variables.get(name) for name in PLACES}
            places = {n: str(v) for n, v in found.items() if isinstance(v, str) and "{{" not in v}
            self._tell("host", host=str(host.name), groups=sorted(groups), places=places)
        self._tell("play", hosts=len(hosts))

    def v2_runner_on_start(self, host, task):
        self._tell("begun", host=str(host.name))

    def _result_of(self, state, result, ignore_errors=False):
        found = result._result
        task = getattr(result, "task", None) or result._task
        host = getattr(result, "host", None) or result._host
        answer = found.get("envcheck")
        answer = dict(answer) if isinstance(answer, dict) else {}
        names = ("msg", "stderr", "module_stderr") if state in ("failed", "unreachable") else ()
        words = "\n".join(str(found[name]) for name in names if found.get(name))
        if words or answer.get("words"):
            hidden = self._secrets(host)
            words = _without(words, hidden)[-LONGEST:]
            if answer.get("words"):
                answer["words"] = _without(str(answer["words"]), hidden)[-LONGEST:]
        self._tell(
            "result",
            host=str(host.name),
            action=str(task.action),
            state=state,
            words=words,
            timed_out=bool(found.get("timedout")),
            answer=_json(answer) if answer else "",
        )

    v2_runner_on_ok = partialmethod(_result_of, "ok")
    v2_runner_on_failed = partialmethod(_result_of, "failed")
    v2_runner_on_unreachable = partialmethod(_result_of, "unreachable")
    v2_runner_on_skipped = partialmethod(_result_of, "skipped")

    def _secrets(self, host):
        """[(a value that is not to be shown, what stands in its place)], the longest first."""
        try:
            manager = self._play.get_variable_manager()
            variables = manager.get_vars(play=self._play, host=host, include_hostvars=False)
        except Exception:
            return None
        found = {}
        for name in list(variables):
            try:
                value = variables[name]
                kind = type(value).__name__
                if not isinstance(value, (str, int)) and kind not in _VAULTED:
                    continue
                text = str(value)
            except Exception:
                continue
            secret = kind in _VAULTED or any(word in str(name).lower() for word in _SECRET)
            if name in ("ansible_host", "ansible_ssh_host"):
                found[text] = str(host.name)
            elif secret and len(text) > 2:
                found[text] = _MASK
        return sorted(found.items(), key=lambda pair: -len(pair[0]))


def _line(event, what):
    """Output of a machine or ssh may hold bytes that are not UTF-8: they become "?"."""
    return (_json(dict(what, event=event)) + "\n").encode("utf-8", "replace")


def _json(value):
    return json.dumps(value, ensure_ascii=False)


def _without(text, hidden):
    if hidden is None:
        return ""  # rather silent than a secret
    for value, instead in hidden:
        at = text.lower().find(value.lower())  # ssh writes options small
        while at >= 0:
            text = text[:at] + instead + text[at + len(value) :]
            at = text.lower().find(value.lower(), at + len(instead))
    return text
