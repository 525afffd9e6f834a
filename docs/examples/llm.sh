# Calls a model with an estimate of its tokens: sh llm.sh ESTIMATE COMMAND..., which prints how many it took.
rate=${SLUICE_URL:?}/rate/llm

# A denial, an error, no answer, or not an answer of Sluice ends the script.
id=$(curl -sSf --max-time 3600 -X POST "$rate?canWait=true&hits=$1" | grep -oE '[0-9a-f-]{36}') || exit 1
shift

# If the call fails, the estimate counts.
tokens=$("$@") || exit
curl -sSf --max-time 5 -w '\n' -X PUT "$rate/$id?hits=$tokens"
