// The exercises of client-go. Each returns an error if an answer isn't the expected one.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

var gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}

// clients are the clients of one exercise, and the namespace that it has for itself.
type clients struct {
	config    *rest.Config
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	namespace string
}

var exercises = map[string]func(context.Context, clients) error{
	"create, get, update, delete": crud,
	"list in pages":               pages,
	"patch, apply, status":        patches,
	"watch":                       watching,
	"delete collection":           deleteCollection,
	"dynamic informer":            dynamicInformer,
	"metadata informer":           metadataInformer,
	"leader election":             leaderElection,
	"event recorder":              eventRecorder,
	"core event recorder":         coreEventRecorder,
	"scale, evict, token":         coreSubresources,
}

// connect makes clients of $KUBECONFIG that send JSON. The typed clients prefer protobuf, which
// neither custom resources nor the embedded server accept.
func connect(namespace string) (clients, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return clients{}, err
	}
	config.ContentType = "application/json"
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	meta, err := metadata.NewForConfig(config)
	return clients{config, typed, dyn, meta, namespace}, err
}

func (c clients) gadgets() dynamic.ResourceInterface {
	return c.dynamic.Resource(gadgets).Namespace(c.namespace)
}

func gadget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gadget",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app": "shop"}},
		"spec":     map[string]any{"size": size},
	}}
}

func create(ctx context.Context, c clients, names ...string) error {
	for _, name := range names {
		if _, err := c.gadgets().Create(ctx, gadget(name, 1), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func size(obj *unstructured.Unstructured) int64 {
	found, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size")
	return found
}

func crud(ctx context.Context, c clients) error {
	if err := create(ctx, c, "a"); err != nil {
		return err
	}
	if err := create(ctx, c, "a"); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a second creation: %v", err)
	}
	found, err := c.gadgets().Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	stale := found.DeepCopy()
	_ = unstructured.SetNestedField(found.Object, int64(2), "spec", "size")
	if found, err = c.gadgets().Update(ctx, found, metav1.UpdateOptions{}); err != nil || size(found) != 2 {
		return fmt.Errorf("updated: %v, %v", found, err)
	}
	_ = unstructured.SetNestedField(stale.Object, int64(3), "spec", "size")
	if _, err = c.gadgets().Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an update of a stale object: %v", err)
	}
	if err := c.gadgets().Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err = c.gadgets().Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a deleted object: %v", err)
	}
	return nil
}

func pages(ctx context.Context, c clients) error {
	if err := create(ctx, c, "a", "b", "c", "d", "e"); err != nil {
		return err
	}
	var names []string
	options := metav1.ListOptions{Limit: 2, LabelSelector: "app=shop"}
	for {
		page, err := c.gadgets().List(ctx, options)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			names = append(names, item.GetName())
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return expect("[a b c d e]", fmt.Sprint(names))
		}
	}
}

func patches(ctx context.Context, c clients) error {
	if err := create(ctx, c, "a"); err != nil {
		return err
	}
	patched, err := c.gadgets().Patch(ctx, "a", types.MergePatchType,
		[]byte(`{"spec":{"size":2}}`), metav1.PatchOptions{})
	if err != nil || size(patched) != 2 {
		return fmt.Errorf("merge patch: %v, %v", patched, err)
	}
	patched, err = c.gadgets().Patch(ctx, "a", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/size","value":3}]`), metav1.PatchOptions{})
	if err != nil || size(patched) != 3 {
		return fmt.Errorf("JSON patch: %v, %v", patched, err)
	}
	options := metav1.ApplyOptions{FieldManager: "test", Force: true}
	applied, err := c.gadgets().Apply(ctx, "a", gadget("a", 4), options)
	if err != nil || size(applied) != 4 || len(applied.GetManagedFields()) == 0 {
		return fmt.Errorf("apply: %v, %v", applied, err)
	}
	_ = unstructured.SetNestedField(applied.Object, "good", "status", "phase")
	_ = unstructured.SetNestedField(applied.Object, int64(9), "spec", "size")
	updated, err := c.gadgets().UpdateStatus(ctx, applied, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	phase, _, _ := unstructured.NestedString(updated.Object, "status", "phase")
	return expect("good 4", fmt.Sprint(phase, " ", size(updated)))
}

func watching(ctx context.Context, c clients) error {
	if err := create(ctx, c, "a"); err != nil {
		return err
	}
	list, err := c.gadgets().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	stream, err := c.gadgets().Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer stream.Stop()
	if err := create(ctx, c, "b"); err != nil {
		return err
	}
	if err := c.gadgets().Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, wanted := range []watch.EventType{watch.Added, watch.Deleted} {
		if event := <-stream.ResultChan(); event.Type != wanted {
			return fmt.Errorf("%s instead of %s: %v", event.Type, wanted, event.Object)
		}
	}
	return nil
}

func deleteCollection(ctx context.Context, c clients) error {
	if err := create(ctx, c, "a", "b"); err != nil {
		return err
	}
	other := gadget("c", 1)
	other.SetLabels(nil)
	if _, err := c.gadgets().Create(ctx, other, metav1.CreateOptions{}); err != nil {
		return err
	}
	selected := metav1.ListOptions{LabelSelector: "app=shop"}
	if err := c.gadgets().DeleteCollection(ctx, metav1.DeleteOptions{}, selected); err != nil {
		return err
	}
	left, err := c.gadgets().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(left.Items) != 1 || left.Items[0].GetName() != "c" {
		return fmt.Errorf("left: %v", left.Items)
	}
	return nil
}

// recorded are the notifications of an informer.
type recorded struct {
	lock sync.Mutex
	seen []string
}

func (r *recorded) add(kind string, obj any) {
	accessor, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		accessor = err.Error()
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.seen = append(r.seen, kind+" "+accessor)
}

func (r *recorded) handlers() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.add("added", obj) },
		UpdateFunc: func(_, obj any) { r.add("updated", obj) },
		DeleteFunc: func(obj any) { r.add("deleted", obj) },
	}
}

func (r *recorded) text() string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return fmt.Sprint(r.seen)
}

func dynamicInformer(ctx context.Context, c clients) error {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, c.namespace, nil)
	defer factory.Shutdown()
	return followed(ctx, c, factory.ForResource(gadgets).Informer(), factory.Start)
}

func metadataInformer(ctx context.Context, c clients) error {
	factory := metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, c.namespace, nil)
	defer factory.Shutdown()
	return followed(ctx, c, factory.ForResource(gadgets).Informer(), factory.Start)
}

// followed runs an informer through an addition, an update and a deletion.
func followed(ctx context.Context, c clients, informer cache.SharedIndexInformer, start func(<-chan struct{})) error {
	if err := create(ctx, c, "a"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	notes := &recorded{}
	if _, err := informer.AddEventHandler(notes.handlers()); err != nil {
		return err
	}
	start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the informer never synced")
	}
	patch := []byte(`{"metadata":{"labels":{"tier":"web"}}}`)
	if _, err := c.gadgets().Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := c.gadgets().Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	key := c.namespace + "/a"
	wanted := fmt.Sprintf("[added %s updated %s deleted %s]", key, key, key)
	return eventually(ctx, func() error { return expect(wanted, notes.text()) })
}

func leaderElection(ctx context.Context, c clients) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	led := make(chan struct{})
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: c.namespace},
		Client:     c.typed.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(led) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { elector.Run(ctx); close(done) }()
	select {
	case <-led:
	case <-ctx.Done():
		return fmt.Errorf("never became the leader")
	}
	holder := func(wanted string) func() error {
		return func() error {
			lease, err := c.typed.CoordinationV1().Leases(c.namespace).Get(context.Background(), "leader", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return expect(wanted, *lease.Spec.HolderIdentity)
		}
	}
	if err := holder("me")(); err != nil {
		return err
	}
	cancel()
	<-done
	return holder("")()
}

func eventRecorder(ctx context.Context, c clients) error {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.typed.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, "example.com/tests")
	about := gadget("a", 1)
	about.SetNamespace(c.namespace)
	recorder.Eventf(about, nil, corev1.EventTypeNormal, "Tested", "Test", "it works")
	return eventually(ctx, func() error {
		found, err := c.typed.EventsV1().Events(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(found.Items) != 1 {
			return fmt.Errorf("%d events", len(found.Items))
		}
		return expect("Tested it works a", fmt.Sprint(found.Items[0].Reason, " ", found.Items[0].Note, " ", found.Items[0].Regarding.Name))
	})
}

func coreEventRecorder(ctx context.Context, c clients) error {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&sink{c.typed.CoreV1().Events(c.namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tests"})
	about := gadget("a", 1)
	about.SetNamespace(c.namespace)
	for range 2 {
		recorder.Event(about, corev1.EventTypeWarning, "Tested", "it works")
	}
	return eventually(ctx, func() error {
		found, err := c.typed.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(found.Items) != 1 {
			return fmt.Errorf("%d events", len(found.Items))
		}
		return expect("Tested 2", fmt.Sprint(found.Items[0].Reason, " ", found.Items[0].Count))
	})
}

// coreSubresources are what only the built-in resources have.
func coreSubresources(ctx context.Context, c clients) error {
	return runCoreSubresources(ctx, c)
}

func expect(wanted, found string) error {
	if wanted != found {
		return fmt.Errorf("%q instead of %q", found, wanted)
	}
	return nil
}

// eventually repeats a check until it holds or the time is over.
func eventually(ctx context.Context, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
