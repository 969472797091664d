#!/usr/bin/env bash
# Requests that schemathesis makes up from the OpenAPI document: no 5xx, no answer that the document does not describe.
# Usage: schemathesis.sh http://127.0.0.1:8080 [PYTHON]
set -euo pipefail
url=$1 python=${2:-python3}
"$(dirname "$(command -v "$python")")/schemathesis" run "$url/api/openapi.json" --url "$url" \
  --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance,unsupported_method \
  --max-examples "${GPN_EXAMPLES:-20}" --workers 2 --seed 1 --exclude-path-regex '/models/\{model\}($|/load)'
