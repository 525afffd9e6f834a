# Waits for a turn of a key in short requests, which keep one place, then runs a command: sh wait.sh KEY COMMAND...
rate=${SLUICE_URL:?}/rate/$1
shift

id=$(cat /proc/sys/kernel/random/uuid 2> /dev/null || uuidgen | tr A-Z a-z) || exit 1
leave() { curl -sS --max-time 5 -o /dev/null -X DELETE "$rate/$id"; }
trap 'leave; exit 143' TERM INT

# Prints the body and the status. Each request takes 25 s at most, and the next one has 30 s to come.
ask() {
  curl -sS --max-time 30 -w '\n%{http_code}' -H 'Prefer: wait=25' -X POST \
    "$rate?canWait=true&keepMillis=30000&requestId=$id"
}

failures=0
while [ $failures -lt 5 ]; do
  case $(ask) in
    *"$id"*200) exec "$@" ;;
    *"$id"*202) failures=0 ;;
    *429) break ;;
    # No answer, an error, or not an answer of Sluice.
    *) failures=$((failures + 1)) && sleep 1 ;;
  esac
done
leave
exit 1
