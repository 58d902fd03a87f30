// Measures a start of client-go's informer on a server whose pods change. client-go keeps no file,
// so that each start is a list of everything; benchmarks/features/restarts.py puts the figures beside those of
// a restart with a cache file.

package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// restart is one measurement; the Python side reads it by these names.
type restart struct {
	Readable float64 `json:"readable"`
	Synced   float64 `json:"synced"`
	Received int64   `json:"received"`
	CPU      float64 `json:"cpu"`
	Longest  float64 `json:"longest"`
	Load     float64 `json:"load"`
	Events   int64   `json:"events"`
}

// countingBody counts the bytes of responses.
type countingBody struct {
	io.ReadCloser
	count *atomic.Int64
}

func (body countingBody) Read(buffer []byte) (int, error) {
	n, err := body.ReadCloser.Read(buffer)
	body.count.Add(int64(n))
	return n, err
}

type countingTransport struct {
	http.RoundTripper
	count *atomic.Int64
}

func (transport countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := transport.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = countingBody{response.Body, transport.count}
	}
	return response, err
}

func printRestart(arguments []string) error {
	flags := flag.NewFlagSet("restart", flag.ExitOnError)
	server := flags.String("server", "", "URL of the server")
	settle := flags.Float64("settle", 3, "seconds between the sync and the measured load")
	seconds := flags.Float64("seconds", 10, "seconds of the measured load")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	figures, err := measureRestart(*server, *settle, *seconds)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

func measureRestart(server string, settle, seconds float64) (*restart, error) {
	var received, events atomic.Int64
	config := &rest.Config{Host: server}
	config.WrapTransport = func(transport http.RoundTripper) http.RoundTripper {
		return countingTransport{transport, &received}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	count := func() { events.Add(1) }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(interface{}) { count() },
		UpdateFunc: func(interface{}, interface{}) { count() },
		DeleteFunc: func(interface{}) { count() },
	}); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	watch := start()
	go informer.RunWithContext(ctx)
	for !informer.HasSynced() {
		time.Sleep(2 * time.Millisecond)
	}
	result := &restart{}
	result.Synced, result.CPU = watch.stop()
	result.Readable, result.Received = result.Synced, received.Load()
	time.Sleep(time.Duration(settle * float64(time.Second)))
	before := events.Load()
	watch = start()
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	wall, cpu := watch.stop()
	result.Load, result.Events = cpu/wall, events.Load()-before
	return result, nil
}
