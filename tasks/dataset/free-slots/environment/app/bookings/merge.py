def merge(bookings):
    """Return the booked time as a sorted list of [start, end) pairs that neither overlap nor touch.

    `bookings` is a list of (start, end) with start < end, in any order. It is left as it was.
    """
    bookings.sort()
    merged = []
    for start, end in bookings:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged
