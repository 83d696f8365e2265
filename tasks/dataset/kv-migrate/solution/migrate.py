import csv
import json
import urllib.request

STORE = "http://store:8080"


def call(method: str, path: str, body: object = None) -> object:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(STORE + path, data=data, method=method)
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


latest: dict[str, dict[str, str]] = {}
with open("/app/legacy.csv", encoding="utf-8", newline="") as source:
    for row in csv.DictReader(source):
        known = latest.get(row["id"])
        if known is None or row["updated"] > known["updated"]:
            latest[row["id"]] = row

for key in call("GET", "/keys"):
    if key.startswith("user/") and key.removeprefix("user/") not in latest:
        call("DELETE", f"/keys/{key}")
for user, row in latest.items():
    value = {
        "name": row["name"].strip(),
        "email": row["email"].strip().lower(),
        "active": row["active"].strip() in ("Y", "y"),
    }
    call("PUT", f"/keys/user/{user}", value)
