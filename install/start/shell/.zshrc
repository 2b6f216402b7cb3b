# Of `envcheck shell`: the user's own first, then the activation, so that nothing undoes its PATH.
[[ ${HISTFILE-} == "$ZDOTDIR"/* ]] && HISTFILE=${ENVCHECK_ZDOTDIR:-$HOME}/.zsh_history
if [[ -n ${ENVCHECK_ZDOTDIR+set} ]]; then
    export ZDOTDIR=$ENVCHECK_ZDOTDIR
else
    unset ZDOTDIR
fi
unset ENVCHECK_ZDOTDIR
[[ -f ${ZDOTDIR:-$HOME}/.zshrc ]] && . "${ZDOTDIR:-$HOME}/.zshrc"
. "$ENVCHECK_ACTIVATE"
unset ENVCHECK_ACTIVATE
