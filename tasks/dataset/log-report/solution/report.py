import json
import re
import sys
from collections import Counter

STATUS = re.compile(r"[0-9]{3}")
DURATION = re.compile(r"[0-9]+(\.[0-9]+)?")


def main() -> None:
    requests = malformed = 0
    by_status: Counter[str] = Counter()
    paths: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    slowest: tuple[float, str] | None = None
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            fields = line.split()
            if not fields:
                continue
            if (
                len(fields) != 5
                or not STATUS.fullmatch(fields[3])
                or not DURATION.fullmatch(fields[4])
            ):
                malformed += 1
                continue
            requests += 1
            path = fields[2].split("?", 1)[0]
            by_status[fields[3][0] + "xx"] += 1
            paths[path] += 1
            if fields[3].startswith("5"):
                errors[fields[0][:13]] += 1
            if slowest is None or float(fields[4]) > slowest[0]:
                slowest = (float(fields[4]), path)
    top = sorted(paths.items(), key=lambda item: (-item[1], item[0]))[:3]
    report = {
        "requests": requests,
        "malformed": malformed,
        "by_status": by_status,
        "slowest": slowest[1] if slowest else None,
        "top_paths": top,
        "server_errors_by_hour": errors,
    }
    print(json.dumps(report))


main()
