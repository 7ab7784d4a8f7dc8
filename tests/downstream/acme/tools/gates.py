"""Gates for tests: a handler waits at one until the test opens it; both can see how far the other is."""

from __future__ import annotations

import threading
from collections import defaultdict

entered: defaultdict[str, threading.Event] = defaultdict(threading.Event)
opened: defaultdict[str, threading.Event] = defaultdict(threading.Event)
left: defaultdict[str, threading.Event] = defaultdict(threading.Event)
