#!/bin/sh
# What some tests need beside Python, from Debian's packages where it is missing and may be installed: Chromium for the
# monitor, mosquitto for MQTT. Without them these tests are skipped and say so; nothing else needs them.
set -u

missing=""
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
    missing="chromium"
PATH="$PATH:/usr/sbin" command -v mosquitto >/dev/null 2>&1 || missing="$missing mosquitto"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "anabranch: installing Debian's packages for the tests:" $missing >&2
    export DEBIAN_FRONTEND=noninteractive
    # A broker that starts by itself would stay behind on the machine.
    export RUNLEVEL=1
    apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 && exit 0
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $missing; } >/dev/null 2>&1 && exit 0
fi
echo "anabranch: the tests that need them will be skipped (Debian: apt-get install$missing):" $missing >&2
