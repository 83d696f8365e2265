import json
import sys


def count_close_pairs(times, window):
    count = 0
    for i in range(len(times)):
        for j in range(i + 1, len(times)):
            if abs(times[i] - times[j]) <= window:
                count += 1
    return count


task = json.load(sys.stdin)
print(count_close_pairs(task["times"], task["window"]))
