# Runs a deploy in the only slot, for at most ten minutes: sh deploy.sh COMMAND...
rate=${SLUICE_URL:?}/rate/deploy-shop

# Without an id there is no slot: a denial, an error, no answer, or not an answer of Sluice.
slot=$(curl -sSf --max-time 3600 -X POST "$rate?canWait=true&holdMillis=600000" | grep -oE '[0-9a-f-]{36}') || exit 1

# Ends before the slot lapses.
timeout 590 "$@"
status=$?
curl -sS --max-time 5 -o /dev/null -X DELETE "$rate/$slot"
exit $status
