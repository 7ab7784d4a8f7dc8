import unittest

from shop.order import Order


class OrderTotal(unittest.TestCase):
    def test_counts_every_piece(self) -> None:
        order = Order()
        order.add(250, quantity=2)
        order.add(100)
        self.assertEqual(order.total(), 600)


if __name__ == "__main__":
    unittest.main()
