# Waits for a turn in a lane or a group of a key, then runs a command:
# sh list.sh KEY lane=NAME HITS COMMAND..., or group=NAME in place of the lane.
rate=${SLUICE_URL:?}/rate/$1
list=$2
hits=$3
shift 3

# A denial, an error, no answer, or not an answer of Sluice ends the script.
curl -sSf --max-time 14400 -X POST -G --data-urlencode "$list" "$rate?canWait=true&hits=$hits" |
  grep -q '"request_id"' || exit 1
exec "$@"
