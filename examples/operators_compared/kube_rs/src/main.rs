mod delivery_network;

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus"
)]
struct SiteSpec {
    page: String,
    pods: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct SiteStatus {
    available: i32,
    conditions: Vec<Condition>,
}

#[derive(thiserror::Error, Debug)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error(transparent)]
    Finalizer(#[from] Box<finalizer::Error<Error>>),
    #[error("purge: {0}")]
    Purge(#[from] delivery_network::Error),
}

struct Context {
    client: Client,
    recorder: Recorder,
}

async fn apply<K>(site: &Site, context: &Context, mut body: Value) -> Result<K, Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let name = site.name_any();
    let owner = site.controller_owner_ref(&()).unwrap();
    body["metadata"] = json!({"name": name, "labels": {"site": name}, "ownerReferences": [owner]});
    let api = Api::<K>::namespaced(context.client.clone(), &site.namespace().unwrap());
    let params = PatchParams::apply("site-operator").force();
    Ok(api.patch(&name, &params, &Patch::Apply(body)).await?)
}

fn web_pods(site: &Site) -> Value {
    let labels = json!({"site": site.name_any()});
    let mount = json!({"name": "page", "mountPath": "/usr/share/nginx/html"});
    let container = json!({"name": "web", "image": "nginx:1.29", "volumeMounts": [mount]});
    let volume = json!({"name": "page", "configMap": {"name": site.name_any()}});
    let pod = json!({"containers": [container], "volumes": [volume]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    json!({"replicas": site.spec.pods, "selector": {"matchLabels": labels}, "template": template})
}

fn is_ready(status: &SiteStatus) -> bool {
    status
        .conditions
        .iter()
        .any(|each| each.type_ == "Ready" && each.status == "True")
}

fn new_status(site: &Site, old: &SiteStatus, available: i32) -> SiteStatus {
    let ready = available >= site.spec.pods;
    let status = if ready { "True" } else { "False" };
    let found = old.conditions.iter().find(|each| each.type_ == "Ready");
    let same = found.filter(|each| each.status == status);
    let condition = Condition {
        type_: "Ready".into(),
        status: status.into(),
        reason: if ready { "Available" } else { "Waiting" }.into(),
        message: String::new(),
        observed_generation: site.metadata.generation,
        last_transition_time: same.map_or_else(now, |each| each.last_transition_time.clone()),
    };
    let mut conditions = old.conditions.clone();
    conditions.retain(|each| each.type_ != "Ready");
    conditions.push(condition);
    SiteStatus {
        available,
        conditions,
    }
}

fn now() -> Time {
    Time(jiff::Timestamp::now())
}

async fn update(site: Arc<Site>, context: &Context) -> Result<Action, Error> {
    let reference = site.object_ref(&());
    if site.spec.page.is_empty() {
        let event = warning("PermanentError", "spec.page is empty");
        context.recorder.publish(&event, &reference).await?;
        return Ok(Action::await_change());
    }
    let data = json!({"index.html": site.spec.page});
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
    apply::<ConfigMap>(&site, context, body).await?;
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": web_pods(&site)});
    let deployment = apply::<Deployment>(&site, context, body).await?;
    let available = deployment
        .status
        .and_then(|each| each.available_replicas)
        .unwrap_or(0);
    let old = site.status.clone().unwrap_or_default();
    let new = new_status(&site, &old, available);
    if new != old {
        let api = Api::<Site>::namespaced(context.client.clone(), &site.namespace().unwrap());
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": site.resource_version()}, "status": new,
        }));
        api.patch_status(&site.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    if is_ready(&new) && !is_ready(&old) {
        let event = Event {
            type_: EventType::Normal,
            note: Some(format!("{available} pods serve the page")),
            ..warning("Available", "")
        };
        context.recorder.publish(&event, &reference).await?;
    }
    Ok(Action::requeue(Duration::from_secs(3600)))
}

fn warning(reason: &str, note: &str) -> Event {
    Event {
        type_: EventType::Warning,
        reason: reason.into(),
        note: Some(note.into()),
        action: "Reconcile".into(),
        secondary: None,
    }
}

async fn cleanup(site: Arc<Site>, context: &Context) -> Result<Action, Error> {
    if let Err(error) = delivery_network::purge(&site.name_any()).await {
        let event = warning("CleanupFailed", &error.to_string());
        context
            .recorder
            .publish(&event, &site.object_ref(&()))
            .await?;
        return Err(error.into());
    }
    Ok(Action::await_change())
}

async fn reconcile(site: Arc<Site>, context: Arc<Context>) -> Result<Action, Error> {
    let api = Api::<Site>::namespaced(context.client.clone(), &site.namespace().unwrap());
    finalizer(&api, "example.com/purge", site, |event| async {
        match event {
            finalizer::Event::Apply(site) => update(site, &context).await,
            finalizer::Event::Cleanup(site) => cleanup(site, &context).await,
        }
    })
    .await
    .map_err(|error| Box::new(error).into())
}

fn on_error(_: Arc<Site>, error: &Error, _: Arc<Context>) -> Action {
    tracing::warn!(%error, "reconcile failed");
    Action::requeue(Duration::from_secs(5))
}

#[tokio::main]
async fn main() -> Result<(), kube::Error> {
    tracing_subscriber::fmt::init();
    let client = Client::try_default().await?;
    let reporter = Reporter {
        controller: "site-operator".into(),
        instance: None,
    };
    let recorder = Recorder::new(client.clone(), reporter);
    let context = Arc::new(Context {
        client: client.clone(),
        recorder,
    });
    Controller::new(Api::<Site>::all(client.clone()), watcher::Config::default())
        .owns(
            Api::<ConfigMap>::all(client.clone()),
            watcher::Config::default(),
        )
        .owns(Api::<Deployment>::all(client), watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, on_error, context)
        .for_each(|_| async {})
        .await;
    Ok(())
}
