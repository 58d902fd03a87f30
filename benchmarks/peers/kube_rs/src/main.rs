//! kube-rs as a peer of the benchmarks: a watcher that feeds a reflector's store, and a handler.
//!
//!     kube_rs --server URL --pods N --events N --form typed|cleared|dynamic [--streaming]
//!
//! The program prints one sample as JSON. Its settings are kube-rs's defaults: a list in pages of
//! 500, or with `--streaming` a watch that begins with the state. `cleared` drops managedFields
//! before an object is stored, as the documentation of kube-rs advises for large caches.

mod meter;

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use futures::{Stream, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::WatchStreamExt;
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use meter::{Stopwatch, resident};

/// The time to wait before the memory is read; the same for all contestants.
const SETTLE: Duration = Duration::from_millis(500);

type Failure = Box<dyn Error>;

/// The command line.
struct Arguments {
    server: String,
    pods: usize,
    events: usize,
    form: String,
    streaming: bool,
}

impl Arguments {
    fn parse() -> Result<Self, Failure> {
        let mut values: HashMap<String, String> = HashMap::new();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let name = word.trim_start_matches("--");
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None if name == "streaming" => (name, String::new()),
                None => (name, words.next().ok_or(format!("{word} needs a value"))?),
            };
            values.insert(name.to_owned(), value);
        }
        let take = |name: &str| values.get(name).cloned().ok_or(format!("--{name} is missing"));
        Ok(Self {
            server: take("server")?,
            pods: take("pods")?.parse()?,
            events: take("events")?.parse()?,
            form: take("form")?,
            streaming: values.contains_key("streaming"),
        })
    }
}

/// The handler: counts events, and records the last version of each object.
struct Tally {
    added: usize,
    updated: usize,
    last: HashMap<String, String>,
}

impl Tally {
    fn new(pods: usize) -> Self {
        Self { added: 0, updated: 0, last: HashMap::with_capacity(pods) }
    }

    /// Handles an event, and returns true at the end of the initial list.
    fn on_event<K: Resource>(&mut self, event: &Event<K>) -> bool {
        match event {
            Event::InitApply(object) => {
                self.added += 1;
                self.record(object);
            }
            Event::Apply(object) => {
                self.updated += 1;
                self.record(object);
            }
            Event::InitDone => return true,
            Event::Init | Event::Delete(_) => {}
        }
        false
    }

    fn record<K: Resource>(&mut self, object: &K) {
        let version = object.resource_version().unwrap_or_default();
        self.last.insert(object.name_any(), version);
    }

    /// Returns a digest of the last received version of each pod.
    fn digest(&self) -> String {
        let mut lines: Vec<String> =
            self.last.iter().map(|(name, version)| format!("{name} {version}\n")).collect();
        lines.sort();
        let mut hash = Sha256::new();
        for line in lines {
            hash.update(line);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    let client = Client::try_from(Config::new(arguments.server.parse()?))?;
    let mut config = watcher::Config::default();
    if arguments.streaming {
        config = config.streaming_lists();
    }
    let pods: Api<Pod> = Api::all(client.clone());
    let sample = match arguments.form.as_str() {
        "typed" => {
            let (store, writer) = reflector::store();
            measure(&arguments, watcher(pods, config), store, writer).await?
        }
        "cleared" => {
            let (store, writer) = reflector::store();
            let cleared = watcher(pods, config).modify(|pod| pod.managed_fields_mut().clear());
            measure(&arguments, cleared, store, writer).await?
        }
        "dynamic" => {
            let resource = ApiResource::erase::<Pod>(&());
            let pods: Api<DynamicObject> = Api::all_with(client, &resource);
            let writer = Writer::new(resource);
            measure(&arguments, watcher(pods, config), writer.as_reader(), writer).await?
        }
        other => return Err(format!("--form must be typed, cleared or dynamic, not {other}").into()),
    };
    println!("{sample}");
    Ok(())
}

/// Waits for the initial list, lets the memory settle, then receives the events.
async fn measure<K>(
    arguments: &Arguments,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    store: Store<K>,
    writer: Writer<K>,
) -> Result<serde_json::Value, Failure>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let mut tally = Tally::new(arguments.pods);
    let bare = resident("VmRSS");
    let mut events = std::pin::pin!(events.default_backoff().reflect(writer));

    let watch = Stopwatch::start();
    while !tally.on_event(&events.try_next().await?.ok_or("the watch ended")?) {}
    let (sync_wall, sync_cpu) = watch.stop();
    if tally.added != arguments.pods {
        return Err(format!("{} pods were listed", tally.added).into());
    }
    let peak = resident("VmHWM");
    meter::release_memory();
    tokio::time::sleep(SETTLE).await;
    let settled = resident("VmRSS");

    let watch = Stopwatch::start();
    release(&arguments.server).await?;
    while tally.updated < arguments.events {
        tally.on_event(&events.try_next().await?.ok_or("the watch ended")?);
    }
    let (events_wall, events_cpu) = watch.stop();
    check(&store, &tally)?;
    Ok(json!({
        "sync_wall": sync_wall, "sync_cpu": sync_cpu,
        "events_wall": events_wall, "events_cpu": events_cpu,
        "bare": bare, "peak": peak, "settled": settled,
        "delivered": tally.updated, "digest": tally.digest(),
    }))
}

/// Compares the store with the last delivered versions.
fn check<K>(store: &Store<K>, tally: &Tally) -> Result<(), Failure>
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let same = |object: &K| {
        tally.last.get(&object.name_any()) == object.meta().resource_version.as_ref()
    };
    let state = store.state();
    if state.len() == tally.last.len() && state.iter().all(|object| same(object)) {
        return Ok(());
    }
    Err("the store differs from the last delivered versions".into())
}

/// Makes the load server send the events.
async fn release(server: &str) -> Result<(), Failure> {
    let address = server.trim_start_matches("http://").trim_end_matches('/');
    let mut connection = TcpStream::connect(address).await?;
    let request = format!("POST /go HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = [0; 64];
    connection.read(&mut answer).await?;
    Ok(())
}
