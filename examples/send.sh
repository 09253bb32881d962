#!/bin/sh
# Sends an article to a sidecar with curl: sh send.sh ID TITLE < text.txt
set -eu
id=${1:?usage: sh send.sh ID TITLE < text.txt} title=${2:?usage: sh send.sh ID TITLE < text.txt}
sidecar=${ESDEDUP_SIDECAR_URL:-http://localhost:9500}
# Python only writes the JSON and the address.
python='import json, sys, urllib.parse as url'
path=$(python3 -c "$python; print(url.quote(sys.argv[1], safe=''))" "$id")
python3 -c "$python; json.dump({'title': sys.argv[1], 'text': sys.stdin.read()}, sys.stdout)" "$title" |
  curl --fail-with-body --silent --show-error --retry 5 "$sidecar/news/_doc/$path" \
    -H 'Content-Type: application/json' --data-binary @-
