// Command clientgo is client-go's shared informer as a peer of the benchmarks.
//
// It exists so that the numbers of the library stand beside those of the reference
// implementation, on the same bytes from the same load server: a SharedIndexInformer with default
// settings (its one index is on the namespace) and one handler. Serving the bytes, comparing what was delivered with what
// was sent, and tables are left to the Python side; `encode` writes the protobuf form of them.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// settle is the time to wait before the memory is read, so that temporary objects are freed.
const settle = 500 * time.Millisecond

func main() {
	if len(os.Args) > 1 && os.Args[1] == "encode" {
		exitOn(encodeFolder(os.Args[2]))
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "queues" {
		exitOn(printQueues(os.Args[2:]))
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "restart" {
		exitOn(printRestart(os.Args[2:]))
		return
	}
	server := flag.String("server", "", "URL of the load server")
	protobuf := flag.Bool("protobuf", false, "ask for protobuf")
	pods := flag.Int("pods", 0, "pods that will be listed")
	events := flag.Int("events", 0, "events that will be sent")
	listeners := flag.Int("listeners", 1, "handlers; the further ones only count")
	flag.Parse()

	sample, err := measure(*server, *protobuf, *pods, *events, *listeners)
	exitOn(err)
	exitOn(json.NewEncoder(os.Stdout).Encode(sample))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sample is one measurement; the Python side reads it by these names.
type sample struct {
	SyncWall   float64 `json:"sync_wall"`
	SyncCPU    float64 `json:"sync_cpu"`
	EventsWall float64 `json:"events_wall"`
	EventsCPU  float64 `json:"events_cpu"`
	Bare       int64   `json:"bare"`
	Peak       int64   `json:"peak"`
	Settled    int64   `json:"settled"`
	Delivered  int     `json:"delivered"`
	Digest     string  `json:"digest"`
}

// tally is the handler. The informer calls the handler from one goroutine.
type tally struct {
	added, updated       int
	awaitAdd, awaitEvent int
	synced, done         chan struct{}
	last                 map[string]string
}

func (t *tally) OnAdd(obj interface{}, _ bool) {
	pod := obj.(*corev1.Pod)
	t.last[pod.Name] = pod.ResourceVersion
	t.added++
	if t.added == t.awaitAdd {
		close(t.synced)
	}
}

func (t *tally) OnUpdate(_, obj interface{}) {
	pod := obj.(*corev1.Pod)
	t.last[pod.Name] = pod.ResourceVersion
	t.updated++
	if t.updated == t.awaitEvent {
		close(t.done)
	}
}

func (t *tally) OnDelete(interface{}) {}

// digest returns a digest of the last received version of each pod.
func (t *tally) digest() string {
	lines := make([]string, 0, len(t.last))
	for name, version := range t.last {
		lines = append(lines, name+" "+version+"\n")
	}
	sort.Strings(lines)
	sum := sha256.New()
	for _, line := range lines {
		sum.Write([]byte(line))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// count is a further handler; the informer calls each from a goroutine of its own.
type count struct {
	events, await int
	done          chan struct{}
}

func (c *count) one() {
	c.events++
	if c.events == c.await {
		close(c.done)
	}
}

func (c *count) OnAdd(interface{}, bool)   { c.one() }
func (c *count) OnUpdate(_, _ interface{}) { c.one() }
func (c *count) OnDelete(interface{})      {}

func measure(server string, protobuf bool, pods, events, listeners int) (*sample, error) {
	// Typed clients use protobuf by default; clients of custom resources must use JSON.
	config := &rest.Config{Host: server}
	config.ContentType = "application/json"
	if protobuf {
		config.ContentType = protobufType
	}
	config.AcceptContentTypes = config.ContentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	handler := &tally{
		awaitAdd: pods, awaitEvent: events,
		synced: make(chan struct{}), done: make(chan struct{}),
		last: make(map[string]string, pods),
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return nil, err
	}
	others := make([]*count, listeners-1)
	for i := range others {
		others[i] = &count{await: pods + events, done: make(chan struct{})}
		if _, err := informer.AddEventHandler(others[i]); err != nil {
			return nil, err
		}
	}
	result := &sample{Bare: resident("VmRSS")}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	watch := start()
	go informer.RunWithContext(ctx)
	<-handler.synced
	result.SyncWall, result.SyncCPU = watch.stop()
	result.Peak = resident("VmHWM")
	// A program would not do this: memory that the collector could release counts as released.
	debug.FreeOSMemory()
	time.Sleep(settle)
	result.Settled = resident("VmRSS")

	watch = start()
	answer, err := http.Post(server+"/go", "", nil)
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	<-handler.done
	for _, other := range others {
		<-other.done
	}
	result.EventsWall, result.EventsCPU = watch.stop()
	result.Delivered, result.Digest = handler.updated, handler.digest()
	return result, nil
}
