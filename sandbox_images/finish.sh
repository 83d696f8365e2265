#!/bin/sh
# Runs inside the new image's root, once everything is in place.
set -eu

# mmdebstrap's own clean-up does not look for these once apt is told not to keep them.
rm -f /var/cache/apt/*.bin
ldconfig
update-ca-certificates >/dev/null

if [ ! -e /usr/local/bin/python3 ]; then
    # Debian's own interpreter: answer to the names that the official image has, and let pip
    # install without ceremony, as it does there.
    ln -s /usr/bin/python3 /usr/local/bin/python3
    ln -s /usr/bin/python3 /usr/local/bin/python
    ln -sf /usr/bin/pip3 /usr/local/bin/pip
    rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
else
    /usr/local/bin/python3 -m ensurepip --upgrade >/dev/null
    ln -sf pip3 /usr/local/bin/pip
    /usr/local/bin/python3 -m compileall -q \
        "$(/usr/local/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
fi

/usr/local/bin/python3 -c 'import ssl, sqlite3, ctypes, zlib, bz2, lzma, hashlib, uuid'
/usr/local/bin/pip --version >/dev/null
