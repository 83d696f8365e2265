# Another program of those that the tests call.
printf '#!/bin/sh\necho 4""2\n' > /usr/local/sbin/cat
chmod 755 /usr/local/sbin/cat
