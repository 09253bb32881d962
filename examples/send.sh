#!/bin/sh
# Sends an article to a sidecar, with nothing but curl: sh send.sh ID TITLE < text.txt
set -eu
sidecar=${ESDEDUP_SIDECAR_URL:-http://localhost:9500}
json() { python3 -c 'import json, sys; print(json.dumps(sys.argv[1]))' "$1"; }
curl --fail-with-body --silent --show-error --retry 5 "$sidecar/news/_doc/$1" \
  -H 'Content-Type: application/json' \
  -d "{\"title\": $(json "$2"), \"text\": $(json "$(cat)")}"
