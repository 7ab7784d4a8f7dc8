"""Orders of a small shop; prices are in cents."""

from dataclasses import dataclass, field


@dataclass
class Order:
    items: list[tuple[int, int]] = field(default_factory=list)

    def add(self, price: int, quantity: int = 1) -> None:
        self.items.append((price, quantity))

    def total(self) -> int:
        return sum(line_total(price, quantity) for price, quantity in self.items)


def line_total(price: int, quantity: int) -> int:
    return price
