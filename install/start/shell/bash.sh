# Of `envcheck shell`: bash reads this in place of the user's ~/.bashrc, so that what that file does to PATH
# comes before the activation.
if [ -f ~/.bashrc ]; then
    . ~/.bashrc
fi
. "$ENVCHECK_ACTIVATE"
unset ENVCHECK_ACTIVATE
