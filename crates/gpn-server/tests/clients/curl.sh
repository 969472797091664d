#!/usr/bin/env bash
# The examples of docs/serve.md, more or less, with curl against a running server: curl.sh http://127.0.0.1:8080
set -euo pipefail
url=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ask() { curl --silent --show-error --fail-with-body "$@"; }

# A photo of 2 x 2 pixels.
base64 -d > "$folder/photo.bmp" <<'IMAGE'
Qk1GAAAAAAAAADYAAAAoAAAAAgAAAAIAAAABABgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD/
AP8AAAD/AAD///8AAA==
IMAGE

ask "$url/healthz"
ask "$url/api/openapi.json" | grep -q '"openapi": "3.1'
ask -F class="curl class" -F place=unknown -F image=@"$folder/photo.bmp" "$url/api/teach" | grep -q '"samples":1'
ask -F image=@"$folder/photo.bmp" -F 'request={"among":"taught","top":1}' "$url/api/predict" | grep -q '"name":"curl class"'
ask "$url/api/classes?q=curl" | grep -q '"total":1'
ask -X DELETE "$url/api/classes/curl%20class" > /dev/null
ask -X POST "$url/api/undo" > /dev/null
ask "$url/api/classes/curl%20class" | grep -q '"kind":"taught"'
ask -X POST "$url/api/undo" > /dev/null
status=$(curl --silent --output "$folder/problem" --write-out '%{http_code} %{content_type}' "$url/api/classes/curl%20class")
[ "$status" = "404 application/problem+json" ] || { echo "$status"; cat "$folder/problem"; exit 1; }
# Curl waits for `100 Continue` before it sends a large body.
head -c 40000000 /dev/zero > "$folder/large"
status=$(curl --silent --output "$folder/problem" --write-out '%{http_code}' -F image=@"$folder/large" "$url/api/predict")
[ "$status" = 413 ] || { echo "$status"; cat "$folder/problem"; exit 1; }
