// A real Kubernetes API server for custom resources, for the tests.
//
// One process: the published apiextensions-apiserver (the part of
// kube-apiserver that serves CustomResourceDefinitions and the objects they
// define) on top of an embedded etcd. The tests use it because a fake server
// only repeats what its author believed about watches, bookmarks, expired
// resource versions and restarts.
//
// main.go reads the flags and runs the two servers; etcd.go holds the store,
// serving.go the port, the certificate and the kubeconfig, discovery.go the
// answers to /api and /apis, roles.go the users of a server that has some.
//
// Left out on purpose: admission (namespaces need not exist), authentication
// and authorization by resources (without -roles everybody may do
// everything), core resources such as pods, and the aggregation layer.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/tools/cache"
)

// settings are the command line.
type settings struct {
	dataDir            string
	kubeconfig         string
	port               int
	compactAfter       time.Duration
	compactionInterval time.Duration
	maxInFlight        int
	roles              string
	featureGates       string
	exitWithStdin      bool
}

func parseFlags() settings {
	var s settings
	flag.StringVar(&s.dataDir, "data-dir", "", "folder for etcd's data and the certificates (required)")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file to write (default DATA-DIR/kubeconfig)")
	flag.IntVar(&s.port, "port", 0, "HTTPS port on 127.0.0.1; 0 picks a free one")
	flag.DurationVar(&s.compactAfter, "compact-after", 0, "let etcd forget history older than this; 0 keeps all")
	flag.DurationVar(&s.compactionInterval, "etcd-compaction-interval", 0,
		"how often the API server compacts etcd, as in kube-apiserver; 0 never does")
	flag.IntVar(&s.maxInFlight, "max-requests-inflight", 400,
		"how many reading requests are served at once, as in kube-apiserver; others get a 429")
	flag.StringVar(&s.roles, "roles", "", "JSON file of users and their rights; without it everybody may do everything")
	flag.StringVar(&s.featureGates, "feature-gates", "", "gates to switch, as in kube-apiserver: ShardedListAndWatch=true")
	flag.BoolVar(&s.exitWithStdin, "exit-with-stdin", false, "exit as soon as standard input is closed")
	flag.Parse()
	if s.kubeconfig == "" {
		s.kubeconfig = filepath.Join(s.dataDir, "kubeconfig")
	}
	return s
}

func main() {
	s := parseFlags()
	if s.dataDir == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if s.exitWithStdin {
		go exitWithStdin()
	}
	if err := run(genericapiserver.SetupSignalContext(), s); err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}

// exitWithStdin keeps a server from outliving a test run that was killed:
// the kernel closes the pipe, whatever way the parent went.
func exitWithStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Fprintln(os.Stderr, "apiserver: standard input is closed, exiting")
	os.Exit(3)
}

func run(ctx context.Context, s settings) error {
	if err := utilfeature.DefaultMutableFeatureGate.Set(s.featureGates); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	store, err := startEtcd(filepath.Join(s.dataDir, "etcd"), s.compactAfter)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer store.Close()

	opts, err := newOptions(s, "http://"+store.Clients[0].Addr().String())
	if err != nil {
		return err
	}
	server, err := newServer(opts, rolesFile(s.roles))
	if err != nil {
		return err
	}
	url := "https://" + opts.RecommendedOptions.SecureServing.Listener.Addr().String()
	if err := writeKubeconfig(s.kubeconfig, url, caFile(s.dataDir)); err != nil {
		return err
	}
	announce(server, url)
	return server.GenericAPIServer.PrepareRun().RunWithContext(ctx)
}

// newOptions turns everything off that would need a second, core API server.
func newOptions(s settings, etcdURL string) (*options.CustomResourceDefinitionsServerOptions, error) {
	opts := options.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	recommended := opts.RecommendedOptions
	recommended.Authentication = nil
	recommended.Authorization = nil
	recommended.Admission = nil
	recommended.CoreAPI = nil
	recommended.Features.EnablePriorityAndFairness = false
	opts.ServerRunOptions.MaxRequestsInFlight = s.maxInFlight
	recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcdURL}
	recommended.Etcd.StorageConfig.CompactionInterval = s.compactionInterval
	if err := serveOn(recommended.SecureServing, s.dataDir, s.port); err != nil {
		return nil, err
	}
	if err := opts.Complete(); err != nil {
		return nil, err
	}
	return opts, opts.Validate()
}

// newConfig does what opts.Config() does, without its service resolver: that
// one watches the Services of a core API server that does not exist here, and
// only conversion webhooks would ask it.
func newConfig(opts *options.CustomResourceDefinitionsServerOptions, roles rolesFile) (*apiserver.Config, error) {
	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	if err := opts.ServerRunOptions.ApplyTo(&generic.Config); err != nil {
		return nil, err
	}
	if err := opts.RecommendedOptions.ApplyTo(generic); err != nil {
		return nil, err
	}
	if roles != "" {
		roles.applyTo(generic)
	}
	resources := apiserver.DefaultAPIResourceConfigSource()
	if err := opts.APIEnablement.ApplyTo(&generic.Config, resources, apiserver.Scheme); err != nil {
		return nil, err
	}
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(
		openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions),
		openapinamer.NewDefinitionNamer(apiserver.Scheme))
	storage := options.NewCRDRESTOptionsGetter(
		*opts.RecommendedOptions.Etcd, generic.ResourceTransformers, generic.StorageObjectCountTracker)
	return &apiserver.Config{
		GenericConfig: generic,
		ExtraConfig:   apiserver.ExtraConfig{CRDRESTOptionsGetter: storage},
	}, nil
}

func newServer(opts *options.CustomResourceDefinitionsServerOptions, roles rolesFile) (*apiserver.CustomResourceDefinitions, error) {
	config, err := newConfig(opts, roles)
	if err != nil {
		return nil, err
	}
	server, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	installDiscovery(server.GenericAPIServer)
	return server, nil
}

// announce prints the one line on standard output, once requests are served
// and the definitions that were there before a restart are known again.
func announce(server *apiserver.CustomResourceDefinitions, url string) {
	definitions := server.Informers.Apiextensions().V1().CustomResourceDefinitions().Informer()
	server.GenericAPIServer.AddPostStartHookOrDie("announce", func(hook genericapiserver.PostStartHookContext) error {
		if cache.WaitForCacheSync(hook.Done(), definitions.HasSynced) {
			fmt.Println("listening", url)
		}
		return nil
	})
}
