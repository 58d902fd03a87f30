package main

import (
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func init() {
	if address := os.Getenv("METRICS_ADDRESS"); address != "" {
		metrics.DefaultBindAddress = address
	}
}

// clusterConfig returns the configuration with JSON in place of protobuf, which the API server in
// memory of aioinformer doesn't read. On other servers ctrl.GetConfigOrDie() alone is enough.
func clusterConfig() *rest.Config {
	config := ctrl.GetConfigOrDie()
	config.ContentType = runtime.ContentTypeJSON
	return config
}

// probeAddress returns the address of the probes: "0" serves none.
func probeAddress() string {
	if address := os.Getenv("PROBE_ADDRESS"); address != "" {
		return address
	}
	return ":8081"
}
