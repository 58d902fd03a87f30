// The store: an etcd with one member, inside this process.
//
// It is there so that a test needs no second binary. How the API server uses
// it is main.go's business.
package main

import (
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// startEtcd opens the store in dir, or makes it, and waits until it answers.
func startEtcd(dir string, compactAfter time.Duration) (*embed.Etcd, error) {
	// Log files are allocated in full when they are opened; 64 MB each, the
	// default, is a lot for every test that starts a server.
	wal.SegmentSizeBytes = 4 << 20
	store, err := embed.StartEtcd(etcdConfig(dir, compactAfter))
	if err != nil {
		return nil, err
	}
	select {
	case <-store.Server.ReadyNotify():
		return store, nil
	case err = <-store.Err():
	case <-time.After(30 * time.Second):
		err = fmt.Errorf("not ready after 30 seconds")
	}
	store.Close()
	return nil, err
}

func etcdConfig(dir string, compactAfter time.Duration) *embed.Config {
	// Port 0 on both sides: the kernel picks, nobody has to agree on numbers.
	// The member remembers its peer URL in its log; it is never dialled, and
	// it stays the same string over restarts.
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Name = "aioinformer"
	config.Dir = dir
	config.ListenClientUrls, config.AdvertiseClientUrls = loopback, loopback
	config.ListenPeerUrls, config.AdvertisePeerUrls = loopback, loopback
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	// An election among one is decided at once; the defaults, made for
	// networks, would add seconds to each restart.
	config.TickMs, config.ElectionMs = 10, 50
	// Written pages survive kill -9, they are the kernel's by then. Only a
	// crash of the machine loses them, and a test run with them.
	config.UnsafeNoFsync = true

	config.AutoCompactionMode = embed.CompactorModePeriodic
	config.AutoCompactionRetention = compactAfter.String()
	config.EnableGRPCGateway = false
	config.LogOutputs = []string{"stderr"}
	config.LogLevel = "warn"
	return config
}
