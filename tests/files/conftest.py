"""The resolvers of the guard, and a directory in memory."""

from tests.guard.conftest import memory as memory
from tests.guard.conftest import resolver as resolver
