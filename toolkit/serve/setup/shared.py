"""What several processes of one server have in common, so that a client may talk to any of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.stores import RedisStores

_SHORTEST_SECRET: Final = 32


class SharedState:
    """A Redis server, where outputs, todos, approvals and locks are kept, and a secret that all processes know.

    From the secret they derive what must be the same in all of them: the name of the session, and the key that seals the
    state of approvals.
    """

    def __init__(self, redis_url: str, secret: str) -> None:
        if len(secret) < _SHORTEST_SECRET:
            raise SetupError(
                f"the secret must have at least {_SHORTEST_SECRET} characters; make one with"
                ' `python -c "import secrets; print(secrets.token_urlsafe(32))"`'
            )
        from toolkit.stores import RedisStores

        self.stores: Final[RedisStores] = RedisStores(redis_url)
        self._secret: Final = secret.encode()

    def overrides(self) -> dict[str, Callable[..., Any]]:
        """The stores for each toolkit. The processes work in one workspace, so they also share the locks of its files."""
        return self.stores.overrides(files=self.derive("the files of the workspace").hex())

    def derive(self, purpose: str) -> bytes:
        """A key for one purpose; nobody can tell another one from it."""
        return hashlib.blake2b(purpose.encode(), key=hashlib.sha256(self._secret).digest(), digest_size=32).digest()


def read_secret(file: Path, workspace: Path) -> str:
    """The secret in a file, which tools must not be able to read."""
    if file.resolve().is_relative_to(workspace.resolve()):
        raise SetupError(f"the file {str(file)!r} is inside the workspace, where tools can read it; move it out")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SetupError(f"the file {str(file)!r} cannot be read: {reason}") from None
