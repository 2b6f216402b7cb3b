# Of `envcheck shell`: dash, ksh and other shells read the file that $ENV names.
unset ENV
if [ -n "${ENVCHECK_USER_ENV-}" ]; then
    ENV=$ENVCHECK_USER_ENV
    export ENV
    eval "ENVCHECK_USER_ENV=\"$ENV\"" # as the shell would expand it
    if [ -f "$ENVCHECK_USER_ENV" ]; then
        . "$ENVCHECK_USER_ENV"
    fi
    unset ENVCHECK_USER_ENV
fi
. "$ENVCHECK_ACTIVATE"
unset ENVCHECK_ACTIVATE
