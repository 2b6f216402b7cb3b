#!/bin/sh
# Slurm's Prolog, Epilog or HealthCheckProgram: drains this node where its driver or its GPUs fail.
# Once mended: scontrol update NodeName=NODE State=RESUME
# Made by `envcheck fleet slurm-prolog`, whose manual is docs/fleet-slurm.md.
#
# As Prolog or Epilog it exits with 1 where the node is drained: Slurm then requeues the job. Everywhere else,
# and whatever goes wrong with envcheck itself, it exits with 0.

# @VERSION@
DEADLINE=@DEADLINE@
LIMIT=@LIMIT@
LOG=@LOG@
# In memory: what happens to disks and network file systems must not matter here. Only root may write there.
RUN=/run/envcheck
# Slurm sets no PATH for a Prolog: sinfo and scontrol have to be in one of these.
PATH=@PATH@
export PATH
cd / || exit 0
umask 077

node=$(uname -n)
node=${SLURMD_NODENAME:-${node%%.*}}
step=0

# What was asked or left here more than an hour ago is removed, Slurm's word on the GPUs included.
mkdir -p "$RUN" && find "$RUN" -mindepth 1 -maxdepth 1 -mmin +60 -exec rm -rf {} + 2>/dev/null
work=$(mktemp -d "$RUN/XXXXXX") || exit 0
trap 'rm -rf "$work"' EXIT

seconds() {
    read -r up _ </proc/uptime
    echo "${up%%.*}"
}

# limited SECONDS COMMAND...: runs it with its output in the files $out and $err; its exit code, or 124 where it
# has not ended by then. It is killed, and not waited for: a process that is stuck in the kernel does not die.
limited() {
    step=$((step + 1))
    out=$work/$step.out err=$work/$step.err code=$work/$step.code
    until=$(($(seconds) + $1))
    shift
    # shellcheck disable=SC2016  # for the other shell
    setsid sh -c '"$@"; echo $? >"$0"' "$code" "$@" >"$out" 2>"$err" </dev/null &
    child=$!
    while ! [ -s "$code" ]; do
        if [ "$(seconds)" -gt "$until" ]; then
            kill -s TERM -- "-$child" 2>/dev/null
            sleep 1
            kill -s KILL -- "-$child" 2>/dev/null
            return 124
        fi
        sleep 0.1 2>/dev/null || sleep 1
    done
    read -r ended <"$code"
    return "$ended"
}

# of_envcheck SECONDS COMMAND...: with nothing of the job's environment, and no home but memory.
of_envcheck() {
    for_seconds=$1
    shift
    limited "$for_seconds" env -i PATH="$PATH" HOME="$work" TMPDIR="$work" LC_ALL=C PYTHONDONTWRITEBYTECODE=1 \
        ${SLURM_CONF:+"SLURM_CONF=$SLURM_CONF"} "$@"
}

# finish CODE SENTENCE: one line in the log, which may be on a disk that hangs.
finish() {
    line=$(printf '%s %s job=%s %s' "$(date '+%Y-%m-%dT%H:%M:%S%z')" "$node" "${SLURM_JOB_ID:--}" "$2" |
        LC_ALL=C tr -cd ' -~' | cut -c 1-600)
    # shellcheck disable=SC2016  # for the other shell
    limited 2 sh -c 'printf "%s\n" "$1" >>"$2"' sh "$line" "$LOG"
    exit "$1"
}

verdict() {
    sed -n 's/^ *"verdict": "\(.*\)",$/\1/p' "$out"
}

# What became of a step, for the log: the doctor's verdict or its first line, or that it did not end.
words() {
    [ "$1" = 124 ] && echo "no answer in time" && return
    verdict=$(verdict)
    echo "exit $1: ${verdict:-$(cat "$err" "$out" | sed -n '/./{p;q;}' | cut -c 1-300)}"
}

ask_slurm() {
    limited 5 env TZ=UTC0 sinfo --Node --noheader --all --nodes="$node" --format=@FORMAT@
}

# Whether Slurm has GPUs on this node: it says so to a job that has some; else it is asked once an hour.
has_gpus() {
    [ -n "$SLURM_JOB_GPUS" ] && return
    if ! [ -f "$RUN/$node.gres" ]; then
        ask_slurm || finish 0 "Slurm did not say whether it has GPUs here: $(words $?)"
        cut -d '|' -f 5 "$out" | sed -n 1p >"$work/gres" && mv "$work/gres" "$RUN/$node.gres"
    fi
    case ,$(cat "$RUN/$node.gres") in
    *,gpu | *,gpu[:\(,]*) ;;
    *) return 1 ;;
    esac
}

has_gpus || finish 0 "Slurm has no GPU on this node: not looked at"
of_envcheck "$DEADLINE" @DOCTOR@
ended=$?
report=$out
case $ended in
0) finish 0 "$(verdict | grep '^degraded' || echo healthy)" ;;
1) ;;
*) finish 0 "could not look: $(words $ended)" ;;
esac

of_envcheck 20 @DECIDE@ "$report" --node "$node" --limit "$LIMIT"
ended=$?
[ $ended -le 1 ] || finish 0 "could not decide: $(words $ended)"
finish $ended "$(cat "$out")"
