import json
import sys


def count_close_pairs(times, window):
    ordered = sorted(times)
    count = oldest = 0
    for newest, time in enumerate(ordered):
        while time - ordered[oldest] > window:
            oldest += 1
        count += newest - oldest
    return count


task = json.load(sys.stdin)
print(count_close_pairs(task["times"], task["window"]))
