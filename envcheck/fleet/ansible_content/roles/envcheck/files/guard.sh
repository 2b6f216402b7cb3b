# Sees to it that nothing stays on a machine. Given: RUN, a word of this run alone, with which what is started has
# ENVCHECK_RUN=$RUN in its environment; LIMIT, the seconds that it may take; GRACE, the seconds between SIGTERM and
# SIGKILL; LATE, what is then printed. After LIMIT seconds, or as soon as nobody reads standard error any more (the
# connection is gone), whatever has that variable is ended, wherever it went. Every line ends so that all of them can
# be put into one: a csh takes no others.
envcheck_kill() {
    envcheck_found=; for one in $(grep -ls "ENVCHECK_RUN=$RUN" /proc/[0-9]*/environ); do
        one=${one#/proc/}; kill "-$1" "${one%/environ}" 2>/dev/null && envcheck_found=yes;
    done; [ -n "$envcheck_found" ];
};
(
    trap '' PIPE; seconds=$LIMIT;
    while [ "$seconds" -gt 0 ] && { [ -t 2 ] || echo >&2; }; do
        sleep 1 >/dev/null 2>&1; seconds=$((seconds - 1));
    done;
    trap '' TERM; [ "$seconds" -gt 0 ] || echo "$LATE";
    exec >/dev/null 2>&1; seconds=$GRACE; envcheck_kill TERM;
    while [ "$seconds" -gt 0 ] && envcheck_kill 0; do sleep 1; seconds=$((seconds - 1)); done;
    while envcheck_kill KILL && [ "$seconds" -gt -5 ]; do sleep 1; seconds=$((seconds - 1)); done;
) </dev/null &
envcheck_guard=$!;
