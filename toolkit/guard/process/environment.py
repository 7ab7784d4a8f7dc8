"""The environment of a command: built from nothing, never copied from this process.

Promise: a command sees only the names below and what its caller added, so it inherits no secret of the host. Variables
that make a loader, shell, interpreter or common tool run other code are refused by name, in upper or lower case. Limit: the
list covers common programs; a program in the workspace may use variables of its own. What builds need (``CC``,
``CARGO_*``, ``PIP_*``, ``npm_config_*``) may be set; no allow rule on commands covers a call that sets it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from toolkit.errors import InvalidArguments, SandboxViolation
from toolkit.guard.files.path import display
from toolkit.guard.process.kernel.proxy_listener import PROXY_PORT

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MAX_VALUE_BYTES: Final = 100_000  # the kernel allows 128 KiB for one variable, name included
_MAX_VARIABLES: Final = 256

_REFUSED: Final = frozenset(
    {
        # where programs, shells and their start-up files are found
        "PATH", "HOME", "TMPDIR", "CDPATH", "ENV", "ZDOTDIR", "FPATH", "SHELL", "BASH_ENV",
        # how a shell reads its text
        "IFS", "PS4", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "PROMPT_COMMAND",
        # code and options for interpreters
        "NODE_OPTIONS", "NODE_PATH", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
        "CLASSPATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "TCLLIBPATH", "R_PROFILE", "R_ENVIRON", "PHPRC",
        "PHP_INI_SCAN_DIR", "MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS",
        # programs that other programs start
        "EDITOR", "VISUAL", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "BROWSER", "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        # options and settings of common tools, some of which name programs
        "TAR_OPTIONS", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH", "LESS", "LESSKEY", "LESSKEYIN", "LESSKEY_CONTENT", "MORE",
        "MANOPT", "GZIP", "ZIPOPT", "UNZIP", "ZIPINFO", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS",
        # what the C library and OpenSSL load or write
        "GCONV_PATH", "LOCPATH", "NLSPATH", "GETCONF_DIR", "HOSTALIASES", "RES_OPTIONS",
        "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "SSLKEYLOGFILE",
    }
)  # fmt: skip
_REFUSED_PREFIXES: Final = (
    "LD_",
    "DYLD_",
    "GIT_",
    "PYTHON",
    "PERL",
    "BASH_FUNC_",
    "MALLOC_",
    "GLIBC_",
    "SSH_",
    "SUDO_",
)
_HARMLESS_PYTHON: Final = frozenset(
    ["PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8"]
)
_HARMLESS: Final = _HARMLESS_PYTHON | {
    "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LANG", "LINES", "NO_COLOR", "RUST_BACKTRACE",
    "SOURCE_DATE_EPOCH", "TZ",
    "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
    "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
}  # fmt: skip


def runs_other_code(name: str) -> bool:
    """Whether a variable of this name can make common programs run other code: no command may get it from a tool.

    >>> runs_other_code("LD_PRELOAD"), runs_other_code("CC")
    (True, False)
    """
    folded = name.upper()
    return name not in _HARMLESS_PYTHON and (folded in _REFUSED or folded.startswith(_REFUSED_PREFIXES))


def is_harmless(name: str) -> bool:
    """Whether a variable of this name is known not to change what common programs run: allow rules cover only these.

    >>> is_harmless("LC_ALL"), is_harmless("CC")
    (True, False)
    """
    return name in _HARMLESS


# How programs find the proxy of the guarded network; some read only one of the two spellings.
_PROXY: Final = {
    name: value
    for upper, value in (
        ("HTTP_PROXY", f"http://127.0.0.1:{PROXY_PORT}"),
        ("HTTPS_PROXY", f"http://127.0.0.1:{PROXY_PORT}"),
        ("NO_PROXY", "localhost,127.0.0.1,::1"),
    )
    for name in (upper, upper.lower())
}


def build_environment(
    additions: Mapping[str, str], *, path: str, home: str, tmp: str, trusted: bool = False, proxied: bool = False
) -> dict[str, str]:
    """The whole environment of one command; ``additions`` that make programs run other code are ``SandboxViolation``.

    Unless they are ``trusted``: given by the person who chose the command and chose to run it without a sandbox.
    ``proxied`` adds the proxy of the guarded network, which ``additions`` may not change.
    """
    if len(additions) > _MAX_VARIABLES:
        raise InvalidArguments(f"at most {_MAX_VARIABLES} environment variables may be given")
    for name, value in additions.items():
        _check(name, value, trusted=trusted)
    fixed = {"PATH": path, "HOME": home, "TMPDIR": tmp, "LANG": "C.UTF-8", "TERM": "dumb"}
    if not proxied:
        return {**fixed, **additions}
    for name in additions:
        if name.upper() in _PROXY:
            raise InvalidArguments(f"{name} may not be set: commands reach the network through the toolkit's own proxy")
    # Node looks at the names above only if it is told to.
    return {**fixed, "NODE_USE_ENV_PROXY": "1", **additions, **_PROXY}


def _check(name: object, value: object, *, trusted: bool) -> None:
    if not isinstance(name, str) or not isinstance(value, str):
        raise InvalidArguments("the names and values of environment variables must be strings")
    if not _NAME.fullmatch(name):
        raise InvalidArguments(f"'{display(name[:80])}' is not a valid name for an environment variable")
    if not trusted and runs_other_code(name):
        raise SandboxViolation(f"the environment variable {name} may not be set: it can make programs run other code")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise InvalidArguments(f"the value of {name} must not contain lone surrogates") from None
    if b"\0" in data or len(data) > _MAX_VALUE_BYTES:
        raise InvalidArguments(f"the value of {name} must be at most {_MAX_VALUE_BYTES} bytes, without NUL")
