#!/bin/sh
# For node-problem-detector: envcheck-node-problem-detector.sh CONDITION MINUTES [DIRECTORY]
# Prints what envcheck wrote there of a condition: 0 no problem, 1 a problem, 2 unknown (older than MINUTES).
read -r code written sentence 2>/dev/null <"${3:-/run/envcheck}/$1"
case $written in
'' | *[!0-9]*) written=0 ;;
esac
if [ $(($(date +%s) - written)) -gt $(($2 * 60)) ]; then
    echo "envcheck has not looked for $2 minutes"
    exit 2
fi
echo "$sentence"
case $code in
0 | 1) exit "$code" ;;
*) exit 2 ;;
esac
