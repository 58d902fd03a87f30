"""An operator for Sites: each has a ConfigMap with its page, and a Deployment that serves it."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from aioinformer import KubeObject, ObjectKey, Operator, ReconcileContext, Resource, Result
from aioinformer.conditions import condition_true
from aioinformer.errors import PermanentError

SITES = Resource("example.com", "v1", "sites", "Site")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


def child(resource: Resource, site: KubeObject, **content: Any) -> dict[str, Any]:
    metadata = {"name": site.name, "labels": {"site": site.name}}
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**head, "metadata": metadata, **content}


def web_pods(site: KubeObject) -> dict[str, Any]:
    mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
    container = {"name": "web", "image": "nginx:1.29", "volumeMounts": [mount]}
    volume = {"name": "page", "configMap": {"name": site.name}}
    labels = {"site": site.name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [volume]}}
    return {"replicas": site["spec"]["pods"], "selector": {"matchLabels": labels}, "template": pod}


def make_operator(client: Any, purge: Callable[[str], Awaitable[None]], **options: Any) -> Operator:
    operator = Operator(client, name="site-operator", leader_election="default/sites", **options)

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        if (site := ctx.obj) is None:
            return None
        if not site["spec"]["page"]:
            raise PermanentError("spec.page is empty")
        await ctx.apply(child(CONFIGMAPS, site, data={"index.html": site["spec"]["page"]}))
        deployment = await ctx.apply(child(DEPLOYMENTS, site, spec=web_pods(site)))
        available = deployment.get("status", {}).get("availableReplicas", 0)
        ready = available >= site["spec"]["pods"]
        reason = "Available" if ready else "Waiting"
        await ctx.set_condition("Ready", ready, reason=reason, fields={"available": available})
        if ready and not condition_true("Ready")(site):
            ctx.event("Normal", "Available", f"{available} pods serve the page")
        return Result(requeue_after=timedelta(hours=1))  # repairs what no event reports

    async def cleanup(key: ObjectKey, ctx: ReconcileContext) -> None:
        await purge(key.name)  # the page, from a cache outside of the cluster

    sites = operator.controller(
        SITES, reconcile, finalizer="example.com/purge", cleanup=cleanup, failure_condition="Synced"
    )
    sites.owns(CONFIGMAPS).owns(DEPLOYMENTS)
    return operator
