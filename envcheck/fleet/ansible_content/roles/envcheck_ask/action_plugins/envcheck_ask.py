"""Runs a script of the controller by a machine's Python, and keeps what it prints in a file here.

The script goes through the connection's standard input, in one command, with the connection, become and
interpreter that the inventory names. Nothing is written on the machine, where the connection can do that.

    - envcheck_ask:
        script: /path/on/the/controller.py
        command: "( … python3 … ) | head -c …"    # what the machine's sh gets; @PYTHON@: its Python
        values: {"@NAME@": …}    # what takes the place of such a JSON string in it
        answers: /a/directory/on/the/controller   # becomes answers/NUMBER, which the result names
"""

from __future__ import annotations

import json
import shlex
import tempfile
from contextlib import suppress
from resource import RLIMIT_AS, getrlimit, setrlimit

from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

MEMORY = 3 << 30  # bytes of address space: for a machine that sends without an end
LARGEST = 16 << 20  # bytes of an answer
CANDIDATES = ("python3", "/usr/libexec/platform-python")


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = True

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        del tmp
        args = self._task.args
        if getattr(self._connection._shell, "_IS_WINDOWS", False):
            return dict(result, failed=True, msg="this is a Windows machine")
        with open(args["script"], "rb") as opened:
            script = opened.read()
        command = args["command"].replace("@PYTHON@", self._python(task_vars))
        for mark, value in (args.get("values") or {}).items():
            if mark == "@PEERS@" and isinstance(value, str):
                value = json.loads(value)
            filled = json.dumps(value).replace("'", "\\u0027")  # it stands in a shell's quotes
            command = command.replace('"%s"' % mark, filled)
        # Ansible keeps all that a connection sends in memory; this process is one machine's alone.
        with suppress(ValueError):  # there is a lower limit already
            setrlimit(RLIMIT_AS, (MEMORY, getrlimit(RLIMIT_AS)[1]))
        try:
            executed = self._exec(command, script)
            output = executed["stdout"].encode("utf-8", "surrogateescape")
        except MemoryError:
            return dict(result, changed=False, envcheck={"endless": True})
        answer = {"words": executed["stderr"][-1000:], "rc": executed["rc"]}
        try:
            with tempfile.NamedTemporaryFile(dir=args["answers"], delete=False) as file:
                file.write(output[:LARGEST])
            answer["answer"] = file.name
        except OSError as error:
            answer["full"] = error.strerror
        return dict(result, changed=False, envcheck=answer)

    def _python(self, task_vars):
        """The interpreters to try, quoted for a shell: the one that the user named, or what is usual."""
        named = task_vars.get("ansible_python_interpreter")
        if named:
            named = self._templar.template(named)
        else:
            try:
                named = constants.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars)
            except Exception:
                named = None
        named = str(named or "auto")
        if named.startswith("auto"):
            return " ".join(CANDIDATES)
        words = shlex.split(named)
        return shlex.quote(words[-1] if words[0].endswith("/env") else words[0])

    def _exec(self, command, script):
        become = getattr(self._connection, "become", None)
        if self._connection.has_pipelining and getattr(become, "name", "") != "su":
            try:
                return self._low_level_execute_command(
                    command, in_data=script, sudoable=True, encoding_errors="surrogateescape"
                )
            except AnsibleConnectionFailure as error:
                if "Broken pipe" in str(error):  # an ssh that had ended: it knows why
                    self._connection.exec_command("true", in_data=b"\n", sudoable=False)
                raise
        # A connection that passes nothing to a command's standard input: through a file, which goes again.
        folder = self._make_tmp_path()
        try:
            path = self._connection._shell.join_path(folder, "envcheck.py")
            self._transfer_data(path, script)
            self._fixup_perms2((folder, path))
            return self._low_level_execute_command(
                "{ %s; } < %s" % (command, shlex.quote(path)),
                sudoable=True,
                encoding_errors="surrogateescape",
            )
        finally:
            self._remove_tmp_path(folder)
