from .merge import merge


def free_slots(opens, closes, bookings, minimum=1):
    """Return the free [start, end) pairs between `opens` and `closes`, in order.

    Only slots of at least `minimum` minutes count. A booking may start before the room opens,
    end after it closes, or lie outside the opening time altogether.
    """
    slots = []
    cursor = opens
    for start, end in merge(bookings):
        if start - cursor > minimum:
            slots.append((cursor, start))
        cursor = end
    if closes - cursor > minimum:
        slots.append((cursor, closes))
    return slots


def is_free(start, end, bookings):
    """Say whether no booking takes any minute of [start, end)."""
    return all(end <= taken or start > until for taken, until in merge(bookings))
