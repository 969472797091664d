#!/usr/bin/env bash
# The examples of docs/serve.md, more or less, with curl against a running server: curl.sh http://127.0.0.1:8080
set -euo pipefail
url=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ask() { curl --silent --show-error --fail-with-body "$@"; }
# The answer must have this text in it.
has() {
  ask "${@:2}" > "$folder/answer"
  grep -q -- "$1" "$folder/answer" || { echo "no $1 in:" && cat "$folder/answer" && exit 1; }
}

# A photo of 2 x 2 pixels.
base64 -d > "$folder/photo.bmp" <<'IMAGE'
Qk1GAAAAAAAAADYAAAAoAAAAAgAAAAIAAAABABgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD/
AP8AAAD/AAD///8AAA==
IMAGE

ask "$url/healthz"
has '"openapi": "3.1' "$url/api/openapi.json"
has '"samples":1' -F class="curl class" -F place=unknown -F image=@"$folder/photo.bmp" "$url/api/teach"
has '"name":"curl class"' -F image=@"$folder/photo.bmp" -F 'request={"among":"taught","top":1}' "$url/api/predict"
has '"total":1' "$url/api/classes?q=curl"
ask -X DELETE "$url/api/classes/curl%20class" > /dev/null
ask -X POST "$url/api/undo" > /dev/null
has '"kind":"taught"' "$url/api/classes/curl%20class"
ask -X POST "$url/api/undo" > /dev/null
status=$(curl --silent --output "$folder/problem" --write-out '%{http_code} %{content_type}' "$url/api/classes/curl%20class")
[ "$status" = "404 application/problem+json" ] || { echo "$status"; cat "$folder/problem"; exit 1; }
# Curl waits for `100 Continue` before it sends a large body.
head -c 40000000 /dev/zero > "$folder/large"
status=$(curl --silent --output "$folder/problem" --write-out '%{http_code}' -F image=@"$folder/large" "$url/api/predict")
[ "$status" = 413 ] || { echo "$status"; cat "$folder/problem"; exit 1; }
