import unittest

from bookings import free_slots, is_free


class FreeSlots(unittest.TestCase):
    def test_empty_day(self):
        self.assertEqual(free_slots(540, 1020, []), [(540, 1020)])

    def test_one_booking(self):
        self.assertEqual(free_slots(540, 1020, [(600, 660)]), [(540, 600), (660, 1020)])

    def test_short_booking_inside_a_long_one(self):
        slots = free_slots(540, 1020, [(600, 720), (620, 640)])
        self.assertEqual(slots, [(540, 600), (720, 1020)])


class IsFree(unittest.TestCase):
    def test_taken(self):
        self.assertFalse(is_free(600, 630, [(590, 610)]))


if __name__ == "__main__":
    unittest.main()
