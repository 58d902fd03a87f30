"""``aioinformer wait``: end when one object has reached a state, or at a timeout.

An informer of that one object retries failed requests, so that a restart of the API server doesn't
end a wait.
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, FieldSelector, Health, Resource, SharedInformerFactory
from aioinformer._cli.cluster_options import check_namespace, choose_namespace, connect
from aioinformer._cli.options import WaitCommandOptions
from aioinformer._cli.outages import show_outages
from aioinformer._cli.terminal.command_process import EXIT_FAILED, Terminal
from aioinformer._cli.terminal.style import printable
from aioinformer._cli.wait.goals import parse_goal
from aioinformer.errors import CacheWaitTimeout, RequestTimedOut


async def run_wait(options: WaitCommandOptions, terminal: Terminal) -> int:
    """Wait until the object has reached the state; return 0 then, and 1 after the timeout."""
    goal = parse_goal(options.goal)
    check_namespace(options.namespace, "--namespace")
    async with connect(options) as client:
        deadline = asyncio.get_running_loop().time() + options.timeout
        namespace = choose_namespace(client, options.namespace, everywhere=False)
        resource = await _find_resource(client, options, deadline)
        goal.check_resource(resource)
        shown = _describe_object(resource, options.name, namespace)
        async with SharedInformerFactory(client) as informers:
            informer = informers.informer(
                resource,
                namespace=namespace if resource.namespaced else "",
                fields=str(FieldSelector.parse({"metadata.name": options.name})),
            )
            key = f"{namespace}/{options.name}" if resource.namespaced else options.name
            until = f"for at most {options.timeout:g} s"
            try:
                async with show_outages(informer, terminal.messages, until=until):
                    left = deadline - asyncio.get_running_loop().time()
                    found = await informer.wait_until(key, goal.end, timeout=left)
            except CacheWaitTimeout as error:
                reason = error.reason if informer.synced else _explain_health(informer.health)
                terminal.messages.show(f"{shown}: not after {options.timeout:g} s: {reason}")
                return EXIT_FAILED
    if found is not None and goal.failed is not None and goal.failed(found):
        terminal.messages.show(f"{shown}: {goal.failed.explain(found)}")
        return EXIT_FAILED
    await terminal.output.write(f"{shown}: {goal.text}\n")
    return 0


async def _find_resource(client: Client, options: WaitCommandOptions, deadline: float) -> Resource:
    """Return the resource, or raise ``RequestTimedOut`` at the deadline."""
    try:
        async with asyncio.timeout_at(deadline):
            return await client.resource(options.resource)
    except TimeoutError:
        shown = f"{options.resource}/{options.name}: not after {options.timeout:g} s"
        text = f"{shown}: no answer from {client.server}"
        raise RequestTimedOut(text, phase="discovery") from None


def _describe_object(resource: Resource, name: str, namespace: str) -> str:
    """Return the object as kubectl writes it, with the namespace that the command looks in.

    Without the namespace, an object of another one would look absent or deleted.
    """
    group = f".{resource.group}" if resource.group else ""
    where = f" in the namespace {namespace}" if resource.namespaced else ""
    return printable(f"{resource.singular}{group}/{name}{where}")


def _explain_health(health: Health) -> str:
    if health.error is None:
        return f"no answer from the server ({health.state} for {health.since:.1f} s)"
    return str(health.error).splitlines()[0]
