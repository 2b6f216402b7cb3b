#!/bin/sh
# Slurm's Prolog, Epilog or HealthCheckProgram: drains this node where envcheck's doctor finds that it fails.
# Made by `envcheck fleet slurm-prolog`, whose manual is docs/fleet-slurm.md.
#
# As Prolog or Epilog it exits with 1 where the node fails: Slurm then drains it, and requeues the job. It
# exits with 0 where the node is well, and where envcheck itself could not look (STRICT=yes: with 1 there, too).
# Nothing is asked of Slurm unless the node fails.

# @VERSION@
DEADLINE=@DEADLINE@
STRICT=@STRICT@
LOG=@LOG@
# Slurm sets no PATH for a Prolog: scontrol has to be in one of these.
PATH=@PATH@
HOME=${HOME:-/root}
export PATH HOME
# Of the job that is about to start: the node is looked at as a whole.
unset CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL

node=${SLURMD_NODENAME:-$(uname -n)}
node=${node%%.*}

log() {
    { printf '%s %s job=%s %s\n' "$(date '+%Y-%m-%dT%H:%M:%S%z')" "$node" "${SLURM_JOB_ID:--}" "$1" >>"$LOG"; } \
        2>/dev/null || :
}

# drain REASON: unless somebody has drained it already, whose reason stays. Ends with 1.
drain() {
    log "drained: $1"
    case $(scontrol --oneliner show node "$node" 2>/dev/null) in
    *State=*DRAIN*) ;;
    *) scontrol update "NodeName=$node" State=DRAIN "Reason=$1" || log "scontrol could not drain it" ;;
    esac
    exit 1
}

# could_not_look WHY
could_not_look() {
    [ "$STRICT" = yes ] && drain "envcheck could not look: $1"
    log "could not look: $1"
    exit 0
}

set -- @DOCTOR@
report=$(timeout -k 5 "$DEADLINE" "$@" 2>&1 </dev/null)
code=$?
case $code in
0)
    log "well"
    exit 0
    ;;
1) ;;
124 | 137) could_not_look "no answer within $DEADLINE s" ;;
*) could_not_look "exit $code: $(printf '%s\n' "$report" | sed -n '/./{p;q;}' | cut -c 1-150)" ;;
esac

# The first FAIL with the lines that it is wrapped to, and how many more there are.
reason=$(printf '%s\n' "$report" | LC_ALL=C awk '
    /^FAIL [A-Z]+-[0-9]+ / { if (++found == 1) { text = substr($0, 6); open = 1 } else open = 0; next }
    open && /^  [A-Za-z0-9(]/ && !/^  To do:/ { text = text substr($0, 2); next }
    { open = 0 }
    END { if (found) print text (found > 1 ? " (and " found - 1 " more)" : "") }' |
    LC_ALL=C tr -cd ' -~' | LC_ALL=C tr '"\\|' '   ' | cut -c 1-200)
# A Python that dies exits with 1, too.
[ -n "$reason" ] || could_not_look "exit 1 without a finding: $(printf '%s\n' "$report" | sed -n '$p' | cut -c 1-150)"
drain "envcheck: $reason"
