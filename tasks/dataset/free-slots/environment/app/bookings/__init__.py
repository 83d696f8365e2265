"""Free time in a day of bookings. Times are minutes since midnight."""

from .merge import merge
from .slots import free_slots, is_free

__all__ = ["free_slots", "is_free", "merge"]
