#!/usr/bin/env bash
# What the tests of pages need and pip cannot install: Chromium and its driver. On Debian, as root. Fails without them.
set -euo pipefail
is_there() { command -v chromedriver >/dev/null && command -v chromium >/dev/null; }
is_there && exit 0
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium chromium-driver fonts-dejavu-core fonts-noto-color-emoji >/dev/null
is_there
