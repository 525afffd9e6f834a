# Runs a command with a permit: sh permit.sh KEY COMMAND...
rate=${SLUICE_URL:?}/rate/$1
shift

# Without an id there is no permit: a denial, an error, no answer, or not an answer of Sluice.
id=$(curl -sSf --max-time 3600 -X POST "$rate?canWait=true&holdMillis=30000" | grep -oE '[0-9a-f-]{36}') || exit 1

"$@" &
work=$!
# Renews the permit for another 30 s. Ends the work before the permit can lapse if that fails.
renew() { curl -sSf --max-time 5 --retry 2 --retry-connrefused -o /dev/null -X PUT "$rate/$id"; }
(while sleep 10 > /dev/null 2>&1 && renew; do :; done; kill $work) &
renewals=$!

finish() {
  kill $renewals $work 2> /dev/null
  wait $work
  curl -sS --max-time 5 -o /dev/null -X DELETE "$rate/$id"
}
trap finish EXIT
trap 'exit 143' TERM INT
wait $work
