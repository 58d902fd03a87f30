"""The operator for Sites with kopf; ``kopf run`` starts it."""

import datetime as dt

import kopf
import kubernetes
from delivery_network import purge
from prometheus_client import start_http_server

SITES = ("example.com", "v1", "sites")


@kopf.on.startup()
def start(settings, **_):
    settings.peering.name, settings.peering.mandatory = "sites", True
    settings.persistence.finalizer = "example.com/purge"
    start_http_server(8080)


def apply(body):
    kopf.adopt(body)
    client = kubernetes.dynamic.DynamicClient(kubernetes.client.ApiClient())
    resource = client.resources.get(api_version=body["apiVersion"], kind=body["kind"])
    where = {name: body["metadata"][name] for name in ("name", "namespace")}
    applied = resource.server_side_apply(
        body, **where, field_manager="site-operator", force_conflicts=True
    )
    return applied.to_dict()


def child(api_version, kind, name, **content):
    metadata = {"name": name, "labels": {"site": name}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def web_pods(name, spec):
    mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
    container = {"name": "web", "image": "nginx:1.29", "volumeMounts": [mount]}
    volume = {"name": "page", "configMap": {"name": name}}
    labels = {"site": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [volume]}}
    return {"replicas": spec["pods"], "selector": {"matchLabels": labels}, "template": pod}


def ready_condition(conditions, ready, reason, generation):
    status = str(ready)
    old = next((each for each in conditions if each["type"] == "Ready"), {})
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    new = {"type": "Ready", "status": status, "reason": reason, "message": ""}
    new["observedGeneration"] = generation
    new["lastTransitionTime"] = old["lastTransitionTime"] if old.get("status") == status else now
    return [each for each in conditions if each["type"] != "Ready"] + [new]


@kopf.on.resume(*SITES)
@kopf.on.create(*SITES)
@kopf.on.update(*SITES, field="spec")
@kopf.on.field(*SITES, field="metadata.annotations.child-changed")
@kopf.timer(*SITES, interval=3600, initial_delay=3600)
def reconcile(body, meta, name, spec, status, patch, **_):
    if not spec["page"]:
        raise kopf.PermanentError("spec.page is empty")
    apply(child("v1", "ConfigMap", name, data={"index.html": spec["page"]}))
    deployment = apply(child("apps/v1", "Deployment", name, spec=web_pods(name, spec)))
    available = deployment.get("status", {}).get("availableReplicas", 0)
    ready = available >= spec["pods"]
    reason, conditions = "Available" if ready else "Waiting", status.get("conditions", [])
    patch.status["available"] = available
    patch.status["conditions"] = ready_condition(conditions, ready, reason, meta["generation"])
    if ready and not any(each["status"] == "True" for each in conditions):
        kopf.event(body, type="Normal", reason="Available", message=f"{available} pods serve")


@kopf.on.delete(*SITES)
def cleanup(name, **_):
    purge(name)


@kopf.on.event("configmaps", labels={"site": kopf.PRESENT})
@kopf.on.event("apps", "v1", "deployments", labels={"site": kopf.PRESENT})
def child_changed(meta, namespace, labels, **_):
    changed = {"metadata": {"annotations": {"child-changed": meta["resourceVersion"]}}}
    sites = kubernetes.client.CustomObjectsApi()
    try:
        sites.patch_namespaced_custom_object(
            *SITES[:2], namespace, SITES[2], labels["site"], changed
        )
    except kubernetes.client.ApiException as error:
        if error.status != 404:
            raise
