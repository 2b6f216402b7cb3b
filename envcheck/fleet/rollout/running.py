"""Runs a roll-out's playbook, and keeps what became of each machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ... import json_text, safe_text
from ...exit_codes import ExitCode
from ..engines.ansible import Event, Inventory, run_playbook
from ..engines.outcomes import of_words
from .model import EndResult, MachineEnd

# Called with a machine when it is begun, and with what became of it.
OnEnd = Callable[[MachineEnd], None]

_ENDED = "ansible-playbook ended before its answer"


class _MachineAnswer(MachineEnd, frozen=True, kw_only=True):
    """What our action says that a machine has answered, who may lie."""

    name: str = ""
    result: Literal["installed", "already", "back", "removed", "nothing", "failed"]
    words: str = ""


class RolloutRun:
    """What is known of the machines, while Ansible works and afterwards."""

    def __init__(self, names: Sequence[str], logs: Path, on_end: OnEnd) -> None:
        self.ends = {name: _not_begun(name) for name in names}
        self.stopped = ""
        self._logs = logs
        self._on_end = on_end
        self._wave = 0
        self._begun: set[str] = set()

    def run(self, playbook: Path, inventory: Inventory, variables: Mapping[str, Any]) -> None:
        """To its end, whatever became of the machines. Raises EnvcheckError where it cannot begin."""
        self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            end = run_playbook(playbook, inventory, variables, self.on_event)
        finally:
            for passing in self._logs.glob(".failed-*"):
                passing.unlink(missing_ok=True)
            for name in self._begun:
                if self.ends[name].result == "not-begun":
                    self._set(name, "failed", int(ExitCode.COULD_NOT_LOOK), _ENDED)
        if end.code not in (0, 2, 4) and end.words:
            self.stopped = f"ansible-playbook {end.description}: {end.words}"

    def on_event(self, event: Event) -> None:
        if event.event == "play":
            self._wave += 1
        elif event.event == "host" and event.host not in self.ends:
            self.ends[event.host] = _not_begun(event.host)
        elif event.event == "begun" and event.host in self.ends:
            self._begun.add(event.host)
        elif event.event == "result" and event.host in self.ends:
            self._result(event)

    def _result(self, event: Event) -> None:
        name, code = event.host, int(ExitCode.COULD_NOT_LOOK)
        if event.state == "skipped":  # by our action: no further machine may be begun
            self._begun.discard(name)
            self.stopped = self.stopped or "more machines failed than --max-fail allows"
        elif event.state == "unreachable":
            self._set(name, "unreachable", code, of_words(event.words, "unreachable")[1])
        elif event.timed_out:
            self._set(name, "timed-out", code, "no answer within its deadline")
        elif not event.answer:
            self._set(name, "failed", code, of_words(event.words, "failed")[1])
        else:
            try:
                self._set_answer(name, json_text.read(event.answer.encode(), _MachineAnswer))
            except json_text.NotReadable as error:
                self._set(name, "failed", code, f"its answer cannot be believed: {error}")

    def _set_answer(self, name: str, answer: _MachineAnswer) -> None:
        """Raises UnreadableAnswer where it contradicts itself."""
        done = answer.result != "failed"
        if done and answer.exit_code:
            raise json_text.NotReadable(f"{answer.result}, with exit code {answer.exit_code}")
        self._set(
            name,
            answer.result,
            answer.exit_code if done or answer.exit_code else int(ExitCode.COULD_NOT_LOOK),
            "" if done and answer.result != "nothing" else _text(answer.words),
            version=_text(answer.version),
            verdict=_text(answer.verdict),
            unproven=[_text(one) for one in answer.unproven],
            **{name: getattr(answer, name) for name in ("carried", "seconds", "log")},
        )

    def _set(self, name: str, result: EndResult, code: int, reason: str, **more: Any) -> None:
        self.ends[name] = MachineEnd(
            name=name, result=result, exit_code=code, reason=reason, wave=self._wave, **more
        )
        self._on_end(self.ends[name])


def _not_begun(name: str) -> MachineEnd:
    return MachineEnd(name=name, result="not-begun", reason="its turn did not come")


def worst(ends: Sequence[MachineEnd]) -> ExitCode:
    """The worst machine's: as of one machine, a higher number is worse. Where none had anything to undo, that
    is no success."""
    if ends and all(end.result == "nothing" for end in ends):
        return ExitCode.COULD_NOT_LOOK
    codes = [end.exit_code for end in ends]
    known = [code for code in codes if code in set(ExitCode)]
    return ExitCode(max(known, default=0) if len(known) == len(codes) else ExitCode.COULD_NOT_LOOK)


def _text(value: str) -> str:
    return safe_text.one_line(value)[:1000]
