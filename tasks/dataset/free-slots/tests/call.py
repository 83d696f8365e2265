"""Runs in the submission's own process: calls it with each case and prints what came back."""

import json
import sys

sys.path.insert(0, sys.argv[1])

from bookings import free_slots, is_free, merge

FUNCTIONS = {"free_slots": free_slots, "is_free": is_free, "merge": merge}
answers = []
for name, arguments in json.load(sys.stdin):
    arguments = [
        [tuple(pair) for pair in argument] if isinstance(argument, list) else argument
        for argument in arguments
    ]
    result = FUNCTIONS[name](*arguments)
    answers.append([result, arguments])
print(json.dumps(answers))
