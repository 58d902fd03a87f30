"""The operator for Sites with the parts of this library, without ``Operator``."""

import asyncio
import datetime as dt
import signal
from contextlib import suppress

from aiohttp import web
from prometheus_client import generate_latest

from aioinformer import (
    Controller,
    EventRecorder,
    LeaderElector,
    Resource,
    Result,
    SharedInformerFactory,
    owner_reference,
    retry_on_conflict,
)
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.errors import CacheWaitTimeout, LeadershipLost, NotFound

SITES = Resource("example.com", "v1", "sites", "Site")
FINALIZER, NAME = "example.com/purge", "site-operator"


def child(api_version, kind, site, **content):
    metadata = {"name": site.name, "namespace": site.namespace, "labels": {"site": site.name}}
    metadata["ownerReferences"] = [owner_reference(site)]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def web_pods(site):
    mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
    container = {"name": "web", "image": "nginx:1.29", "volumeMounts": [mount]}
    volume = {"name": "page", "configMap": {"name": site.name}}
    labels = {"site": site.name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [volume]}}
    return {"replicas": site["spec"]["pods"], "selector": {"matchLabels": labels}, "template": pod}


def with_condition(conditions, status, reason, generation):
    found = [dict(each) for each in conditions]
    new = {"type": "Ready", "status": str(status), "reason": reason, "message": ""}
    new["observedGeneration"] = generation
    for each in found:
        if each["type"] == "Ready":
            if each["status"] == new["status"]:
                new["lastTransitionTime"] = each["lastTransitionTime"]
            found.remove(each)
            break
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [*found, {"lastTransitionTime": now, **new}]


class SiteReconciler:
    def __init__(self, client, elector, informers, events, purge):
        self.sites = informers.informer(SITES)
        self.configmaps = informers.informer("configmaps")
        self.deployments = informers.informer("deployments")
        self.site_api = elector.guarded(client.api(SITES))
        self.configmap_api = elector.guarded(client.api("configmaps"))
        self.deployment_api = elector.guarded(client.api("deployments"))
        self.events, self.purge = events, purge

    async def set_finalizers(self, key, change):
        async def attempt():
            body = (await self.site_api.get(key)).to_dict()
            finalizers = body["metadata"].get("finalizers", [])
            if (wanted := change(finalizers)) == finalizers:
                return None
            body["metadata"]["finalizers"] = wanted
            return await self.site_api.update(body)

        with suppress(NotFound):
            if (written := await retry_on_conflict(attempt)) is not None:
                with suppress(CacheWaitTimeout):
                    await self.sites.wait_for(written, timeout=5)

    async def __call__(self, key, ctx):
        site = self.sites.lister.get(key)
        if site is None:
            return None
        finalizers = site["metadata"].get("finalizers", [])
        if site.deletion_timestamp is not None:
            if FINALIZER in finalizers:
                await self.purge(key.name)
                await self.set_finalizers(key, lambda old: [x for x in old if x != FINALIZER])
            return None
        if FINALIZER not in finalizers:
            await self.set_finalizers(key, lambda old: [*old, FINALIZER])
        if not site["spec"]["page"]:
            self.events.record(site, "Warning", "Invalid", "spec.page is empty")
            return None
        body = child("v1", "ConfigMap", site, data={"index.html": site["spec"]["page"]})
        configmap = await self.configmap_api.apply(body, field_manager=NAME)
        body = child("apps/v1", "Deployment", site, spec=web_pods(site))
        deployment = await self.deployment_api.apply(body, field_manager=NAME)
        available = deployment.get("status", {}).get("availableReplicas", 0)
        old = site.get("status", {})
        ready = available >= site["spec"]["pods"]
        reason, generation = "Available" if ready else "Waiting", site["metadata"]["generation"]
        conditions = with_condition(old.get("conditions", []), ready, reason, generation)
        new = {"available": available, "conditions": conditions}
        written = site
        if new != site.to_dict().get("status"):
            written = await self.site_api.patch(key, {"status": new}, subresource="status")
            if ready and not any(each["status"] == "True" for each in old.get("conditions", [])):
                self.events.record(site, "Normal", "Available", f"{available} pods serve the page")
        with suppress(CacheWaitTimeout):
            await self.configmaps.wait_for(configmap, timeout=5)
            await self.deployments.wait_for(deployment, timeout=5)
            await self.sites.wait_for(written, timeout=5)
        return Result(requeue_after=3600)


async def lead(client, purge, identity, metrics, controllers):
    elector = LeaderElector(client.api("leases"), "default/sites", identity=identity)
    async with (
        SharedInformerFactory(client, metrics=metrics) as informers,
        EventRecorder(client.api("events.events.k8s.io"), controller=NAME) as events,
    ):
        reconciler = SiteReconciler(client, elector, informers, events, purge)
        while True:
            with suppress(LeadershipLost):
                async with elector.leading():
                    controller = Controller(
                        reconciler.sites, reconciler, name=NAME, timeout=30, metrics=metrics
                    )
                    controllers[:] = [controller]
                    controller.owns(reconciler.configmaps).owns(reconciler.deployments)
                    await controller.run()
                    return


async def serve(port):
    app = web.Application()
    app.router.add_get("/healthz", lambda _: web.Response())
    app.router.add_get("/metrics", lambda _: web.Response(body=generate_latest()))
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    return runner


async def main(client, purge, identity, port):
    runner, controllers = await serve(port), []
    program = asyncio.create_task(lead(client, purge, identity, PrometheusMetrics(), controllers))

    def stop():
        controllers[0].stop() if controllers else program.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        await program
    await runner.cleanup()
