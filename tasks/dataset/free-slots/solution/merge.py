def merge(bookings):
    """Return the booked time as a sorted list of [start, end) pairs that neither overlap nor touch.

    `bookings` is a list of (start, end) with start < end, in any order. It is left as it was.
    """
    merged = []
    for start, end in sorted(bookings):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
