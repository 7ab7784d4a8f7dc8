"""The inner end of the pipes: sends calls to the toolkit, and receives their results."""

from __future__ import annotations

import asyncio
import os
import select
import threading
from typing import Any, Final

from toolkit.runtime.programs.frames import Frame, FrameBuffer, pack

_CHUNK: Final = 1 << 18


class Connection:
    """Sends and receives frames. Calls may be made by several threads, and by tasks of one event loop."""

    def __init__(self, source: int, sink: int) -> None:
        self._source: Final = source
        self._sink: Final = sink
        self._buffer: Final = FrameBuffer()
        self._sending: Final = threading.Lock()
        self._receiving: Final = threading.Lock()
        self._arrived: Final[dict[int, Frame]] = {}
        """Results that nobody has taken yet."""
        self._futures: Final[dict[int, asyncio.Future[Frame]]] = {}
        self._requests: list[Frame] = []
        self._last = 0

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        data = pack(head, body)
        with self._sending:
            while data:
                data = data[os.write(self._sink, data) :]

    def next_request(self) -> Frame:
        """Waits for the next program."""
        while not self._requests:
            with self._receiving:
                self._receive()
        return self._requests.pop(0)

    def call(self, head: dict[str, Any], body: bytes) -> Frame:
        """Makes a call and waits for its result."""
        number = self._next_number()
        self.send({**head, "call": number, "waits": True}, body)
        while number not in self._arrived:
            with self._receiving:
                if number not in self._arrived:
                    self._receive()
        return self._arrived.pop(number)

    async def call_async(self, head: dict[str, Any], body: bytes) -> Frame:
        """The same for a task of the running event loop, while other tasks go on."""
        loop = asyncio.get_running_loop()
        number = self._next_number()
        future: asyncio.Future[Frame] = loop.create_future()
        self._futures[number] = future
        loop.add_reader(self._source, self._receive_arrived)
        self.send({**head, "call": number, "waits": False}, body)
        try:
            return await future
        finally:
            self._futures.pop(number, None)
            if not self._futures:
                loop.remove_reader(self._source)

    def _next_number(self) -> int:
        with self._sending:
            self._last += 1
            return self._last

    def _receive_arrived(self) -> None:
        """Reads for the event loop, which must not wait. A thread that waits for a call reads for all."""
        if self._receiving.acquire(blocking=False):
            try:
                if select.select([self._source], [], [], 0)[0]:  # a thread may have read it meanwhile
                    self._receive()
            finally:
                self._receiving.release()

    def _receive(self) -> None:
        """Reads what has arrived; waits if there is nothing. Only for the holder of ``_receiving``."""
        data = os.read(self._source, _CHUNK)
        if not data:
            os._exit(0)  # the toolkit is gone
        for frame in self._buffer.add(data):
            number = frame.head.get("result")
            if number is None:
                self._requests.append(frame)
            elif (future := self._futures.get(number)) is None:
                self._arrived[number] = frame
            elif not future.done():
                future.get_loop().call_soon_threadsafe(_finish, future, frame)


def _finish(future: asyncio.Future[Frame], frame: Frame) -> None:
    if not future.done():
        future.set_result(frame)
