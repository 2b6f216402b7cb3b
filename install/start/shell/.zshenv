# Of `envcheck shell`: zsh reads this folder in place of the user's, where $ZDOTDIR says so.
_envcheck_folder=$ZDOTDIR
if [[ -n ${ENVCHECK_ZDOTDIR+set} ]]; then
    export ZDOTDIR=$ENVCHECK_ZDOTDIR
else
    unset ZDOTDIR
fi
[[ -f ${ZDOTDIR:-$HOME}/.zshenv ]] && . "${ZDOTDIR:-$HOME}/.zshenv"
# It may have moved the rest of the user's files.
if [[ -n ${ZDOTDIR+set} ]]; then
    ENVCHECK_ZDOTDIR=$ZDOTDIR
else
    unset ENVCHECK_ZDOTDIR
fi
ZDOTDIR=$_envcheck_folder
unset _envcheck_folder
