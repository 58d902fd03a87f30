package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queueKey is the usual key of a controller's queue: a namespace and a name.
type queueKey struct{ namespace, name string }

type queue = workqueue.TypedRateLimitingInterface[queueKey]

// queueTimes are seconds for so many keys; the Python side reads them by these names.
type queueTimes struct {
	Add     float64 `json:"add"`
	Work    float64 `json:"work"`
	Again   float64 `json:"again"`
	Merged  float64 `json:"merged"`
	Delayed float64 `json:"delayed"`
	Workers float64 `json:"workers"`
}

func printQueues(arguments []string) error {
	flags := flag.NewFlagSet("queues", flag.ExitOnError)
	keys := flags.Int("keys", 100_000, "keys of each measurement")
	workers := flags.Int("workers", 4, "workers that wait together")
	measured := flags.Bool("metrics", false, "count and time, as a controller's queue does")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(measureQueues(*keys, *workers, *measured))
}

// measureQueues measures client-go's rate-limiting queue by the operations of benchmarks/features/queues.py.
func measureQueues(keys, workers int, measured bool) queueTimes {
	all := make([]queueKey, keys)
	for i := range all {
		all[i] = queueKey{"default", fmt.Sprintf("pod-%d", i)}
	}
	var times queueTimes
	q := newQueue(measured)
	times.Add = timed(func() {
		for _, key := range all {
			q.Add(key)
		}
	})
	times.Work = timed(func() { work(q, keys) })
	times.Again = timed(func() {
		for range all {
			q.Add(all[0])
			work(q, 1)
		}
	})
	q.Add(all[0])
	times.Merged = timed(func() {
		for range all {
			q.Add(all[0])
		}
	})
	work(q, 1)
	// All delays end before the first get, so this measures the speed and not the delays.
	times.Delayed = timed(func() {
		for i, key := range all {
			q.AddAfter(key, time.Duration(1+i%7)*time.Microsecond)
		}
		work(q, keys)
	})
	times.Workers = timed(func() { workTogether(q, all, workers) })
	q.ShutDown()
	return times
}

func newQueue(measured bool) queue {
	config := workqueue.TypedRateLimitingQueueConfig[queueKey]{}
	if measured {
		config.Name, config.MetricsProvider = "pods", counting{}
	}
	limiter := workqueue.DefaultTypedControllerRateLimiter[queueKey]()
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config)
}

func timed(run func()) float64 {
	start := time.Now()
	run()
	return time.Since(start).Seconds()
}

func work(q queue, keys int) {
	for range keys {
		key, _ := q.Get()
		q.Done(key)
	}
}

// workTogether runs workers that wait for the keys of one producer.
func workTogether(q queue, all []queueKey, workers int) {
	var left atomic.Int64
	left.Store(int64(len(all)))
	var done sync.WaitGroup
	done.Add(len(all))
	for range workers {
		go func() {
			for left.Add(-1) >= 0 {
				key, _ := q.Get()
				q.Done(key)
				done.Done()
			}
		}()
	}
	for _, key := range all {
		q.Add(key)
	}
	done.Wait()
}

// counting is a minimal metrics provider, which counts as much as our queue does by itself.
type counting struct{}

type number struct{ value atomic.Int64 }

func (n *number) Inc()              { n.value.Add(1) }
func (n *number) Dec()              { n.value.Add(-1) }
func (n *number) Set(f float64)     { n.value.Store(int64(f)) }
func (n *number) Observe(f float64) { n.value.Add(int64(f * 1e9)) }

func (counting) NewDepthMetric(string) workqueue.GaugeMetric       { return &number{} }
func (counting) NewAddsMetric(string) workqueue.CounterMetric      { return &number{} }
func (counting) NewLatencyMetric(string) workqueue.HistogramMetric { return &number{} }
func (counting) NewWorkDurationMetric(string) workqueue.HistogramMetric {
	return &number{}
}
func (counting) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return &number{}
}
func (counting) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return &number{}
}
func (counting) NewRetriesMetric(string) workqueue.CounterMetric { return &number{} }
