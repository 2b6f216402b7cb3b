# Every Python that is found where systems, pyenv and uv have them says what it is. Given: SCRIPT, which it runs. Every
# line ends so that all of them can be put into one.
set -- python3 /usr/bin/python3.* /usr/local/bin/python3.* /opt/python*/bin/python3;
set -- "$@" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python "$HOME"/.local/share/uv/python/*/bin/python3;
for python in "$@"; do
    case $python in *-config) continue ;; esac;
    found=$(command -v "$python") && real=$(readlink -f "$found") || continue;
    case " $seen " in *" $real "*) continue ;; esac;
    seen="$seen $real";
    echo; echo "@envcheck python $found";
    timeout -k 2 10 "$found" -I -B -c "$SCRIPT" | head -c 20000;
done
