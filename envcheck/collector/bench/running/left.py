"""How long a bench still takes, about: by what its rows so far have taken. Pure."""

FIRST = {"import": 10.0, "build": 15.0, "warm-up": 6.0, "end": 1.0}  # seconds, before any was seen
_TRIES = 4  # on the way to a largest batch, about


class TimeLeft(object):
    """Told of what is over, says what is left."""

    def __init__(self, rows, repetitions, seconds):
        """rows: all of them, in their order. seconds: of one repetition."""
        self._repetitions = repetitions
        self._seconds = seconds
        self._rows = {row["name"]: row for row in rows}
        self._left = {row["name"]: self._phases(row) for row in rows}
        self._seen = {}  # {(style, phase): seconds of the last}

    def took(self, name, phase, seconds):
        """A phase of a row is over, and took so long."""
        row = self._rows.get(name)
        if row is None:
            return
        self._seen[row["style"], phase] = seconds
        left = self._left[name]
        if left.get(phase):
            left[phase] -= 1

    def done(self, name, phase):
        """Nothing more comes of that phase of a row."""
        if name in self._left:
            self._left[name].pop(phase, None)

    def over(self, name):
        """Nothing more comes of a row, whatever was left."""
        self._left[name] = {}

    @property
    def seconds(self):
        return sum(
            count * self._expected(self._rows[name], phase)
            for name, phases in self._left.items()
            for phase, count in phases.items()
        )

    def _phases(self, row):
        phases = {"import": 1, "build": 1, "end": 1}
        if row["steps"]:
            phases["losses"] = 1
        else:
            phases.update({"warm-up": 1, "measure": self._repetitions})
        if row["largest"]:
            phases["batch"] = _TRIES
        return phases

    def _expected(self, row, phase):
        seen = self._seen.get((row["style"], phase))
        if seen is not None:
            return seen
        if phase == "measure":
            return self._seconds
        if phase == "batch":
            return self._expected(row, "import") + self._expected(row, "build")
        if phase == "losses":
            return 0.1 * row["steps"]
        return FIRST[phase]
