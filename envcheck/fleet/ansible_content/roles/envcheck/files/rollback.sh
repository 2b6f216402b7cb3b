# Goes back to the version before the last roll-out's, which its last line in rolled-out names. Given: NAME (of the
# environment; "" for the one rolled out last).
home=$HOME/.local/share/envcheck-fleet
record=$(cat "$home/rolled-out" 2>/dev/null) && [ -n "$record" ] ||
    { echo "@envcheck nothing there is no roll-out here to go back from"; exit 0; }
directory=$(printf '%s\n' "$record" | sed -n 1p)
version=$(printf '%s\n' "$record" | sed -n 2p)
before=$(printf '%s\n' "$record" | sed -n 3p)
[ -z "$NAME" ] || [ "${directory##*/}" = "$NAME" ] ||
    { echo "@envcheck nothing the last roll-out here was of ${directory##*/}"; exit 0; }
now=$(readlink "$directory/current") && now=${now##*/}
[ "$now" = "$version" ] ||
    { echo "@envcheck nothing it has ${now:-nothing} in use by now, not the roll-out's $version"; exit 0; }
[ -n "$before" ] ||
    { echo "@envcheck nothing there was nothing before $version; envcheck uninstall removes it"; exit 0; }
"$home/envcheck/bin/envcheck" rollback "$directory" --to "$before" </dev/null >&2 || exit
rm -f "$home/rolled-out"
echo "@envcheck back $before"
