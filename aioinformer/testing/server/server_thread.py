"""``ApiServerThread``: an embedded API server for synchronous tests, in a thread of its own.

Stand-ins for the cluster and the faults run each method in the thread's event loop, because neither
is made for several threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from anyio.from_thread import start_blocking_portal

from aioinformer.errors import NotRunning, UsageError
from aioinformer.testing.access.access import Access, AuthorizationMode
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.storage import Snapshot
from aioinformer.testing.faults.faults import Fault, Faults
from aioinformer.testing.server.server import ApiServer

if TYPE_CHECKING:
    import ssl

    from anyio.from_thread import BlockingPortal


class ApiServerThread:
    """An API server in a thread of its own, for tests that are not ``async``.

    ::

        class ShopTest(unittest.TestCase):
            def setUp(self) -> None:
                self.server = self.enterContext(ApiServerThread())

            def test_a_pod_is_listed(self) -> None:
                self.server.cluster.create("pods", {"metadata": {"name": "web-0"}})
                ...  # call a synchronous client of self.server.url

    Entering the context starts the thread and the server, leaving it ends both. Any other thread
    may use everything here. Methods of ``cluster`` and ``faults`` run in the server's event loop,
    and the caller waits for the result; outside of the context they raise ``NotRunning``, as do
    ``stop``, ``restart`` and ``drop_connections``. The arguments are those of ``ApiServer``; the
    program must not use ``cluster`` any more except through the attribute.
    """

    def __init__(
        self,
        cluster: Cluster | None = None,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
        authorization: AuthorizationMode = "AlwaysAllow",
        accept_hosts: Iterable[str] = (),
    ) -> None:
        self._server = ApiServer(
            cluster,
            port=port,
            tls=tls,
            token=token,
            authorization=authorization,
            accept_hosts=accept_hosts,
        )
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None

    @property
    def url(self) -> str:
        """The address, without a slash at the end; ``NotRunning`` if it never had a port."""
        return self._server.url

    @property
    def cluster(self) -> Cluster:
        """The cluster. Each method runs in the server's event loop."""
        return cast("Cluster", _LoopObject(self._server.cluster, self._require_portal))

    @property
    def faults(self) -> Faults:
        """The switches for faults. Each method runs in the server's event loop."""
        return cast("Faults", _LoopObject(self._server.faults, self._require_portal))

    @property
    def access(self) -> Access:
        """The users of the server. A change concerns the next request."""
        return self._server.access

    def stop(self) -> None:
        """Stop like a crash: break every connection, refuse new ones. The objects stay."""
        self._require_portal().call(self._server.stop)

    def restart(self, *, state: Snapshot | None = None, lose_data: bool = False) -> None:
        """Stop like a crash and start again on the same port; see ``ApiServer.restart``."""

        async def restart() -> None:
            await self._server.restart(state=state, lose_data=lose_data)

        self._require_portal().call(restart)

    def drop_connections(self) -> None:
        """Break every connection at once, also in the middle of an answer, and go on serving."""
        self._require_portal().call(self._server.drop_connections)

    def kubeconfig(
        self,
        path: str | os.PathLike[str],
        *,
        user: str = "",
        certificate_authority: Path | None = None,
    ) -> Path:
        """Write a kubeconfig for this server; see ``ApiServer.kubeconfig``."""
        return self._server.kubeconfig(
            Path(path), user=user, certificate_authority=certificate_authority
        )

    def __enter__(self) -> Self:
        if self._portal is not None:
            raise UsageError("the server's thread is running already: enter it once")
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal(name="embedded API server"))
            stack.callback(self._forget_portal)
            stack.enter_context(self._portal.wrap_async_context_manager(self._server))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(exc_type, exc_value, traceback)

    def _forget_portal(self) -> None:
        self._portal = None

    def _require_portal(self) -> BlockingPortal:
        if self._portal is None:
            raise NotRunning("the server's thread is not running: use it inside of its `with`")
        return self._portal

    def __repr__(self) -> str:
        return f"<ApiServerThread of {self._server!r}>"


class _LoopObject:
    """A stand-in for an object of the server's event loop, whose methods it runs there."""

    def __init__(self, target: object, require_portal: Callable[[], BlockingPortal]) -> None:
        self._target = target
        self._require_portal = require_portal

    def __getattr__(self, name: str) -> Any:
        found: Any = getattr(self._target, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            result: Any = self._require_portal().call(lambda: found(*args, **options))
            # A fault is ended in the loop as well.
            return (
                _LoopObject(result, self._require_portal) if isinstance(result, Fault) else result
            )

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()  # a fault: no other object here is a context manager

    def __repr__(self) -> str:
        return f"<{self._target!r} in the thread of its server>"
