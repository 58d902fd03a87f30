package main

import (
	"context"
	"errors"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const finalizer = "example.com/purge"

var errEmptyPage = errors.New("spec.page is empty")

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(addSites(scheme))
}

type SiteReconciler struct {
	client.Client
	Events events.EventRecorder
}

func (r *SiteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := r.Get(ctx, req.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		if controllerutil.ContainsFinalizer(&site, finalizer) {
			if err := purge(ctx, site.Name); err != nil {
				r.Events.Eventf(&site, nil, corev1.EventTypeWarning, "CleanupFailed", "Purge", "%v", err)
				return ctrl.Result{}, err
			}
			controllerutil.RemoveFinalizer(&site, finalizer)
			return ctrl.Result{}, r.Update(ctx, &site)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&site, finalizer) {
		if err := r.Update(ctx, &site); err != nil {
			return ctrl.Result{}, err
		}
	}
	if site.Spec.Page == "" {
		r.Events.Eventf(&site, nil, corev1.EventTypeWarning, "PermanentError", "Reconcile", "spec.page is empty")
		return ctrl.Result{}, reconcile.TerminalError(errEmptyPage)
	}
	named := metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}
	configMap := &corev1.ConfigMap{ObjectMeta: named}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, configMap, func() error {
		configMap.Data = map[string]string{"index.html": site.Spec.Page}
		return controllerutil.SetControllerReference(&site, configMap, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	deployment := &appsv1.Deployment{ObjectMeta: named}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		setWebPods(&deployment.Spec, &site)
		return controllerutil.SetControllerReference(&site, deployment, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	before := site.DeepCopy()
	ready := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting",
		ObservedGeneration: site.Generation,
	}
	site.Status.Available = deployment.Status.AvailableReplicas
	if site.Status.Available >= site.Spec.Pods {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Available"
	}
	changed := meta.SetStatusCondition(&site.Status.Conditions, ready)
	if changed || before.Status.Available != site.Status.Available {
		from := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Status().Patch(ctx, &site, from); err != nil {
			return ctrl.Result{}, err
		}
	}
	if ready.Status == metav1.ConditionTrue &&
		!meta.IsStatusConditionTrue(before.Status.Conditions, "Ready") {
		r.Events.Eventf(&site, nil, corev1.EventTypeNormal, "Available", "Reconcile",
			"%d pods serve the page", site.Status.Available)
	}
	return ctrl.Result{RequeueAfter: time.Hour}, nil
}

func setWebPods(spec *appsv1.DeploymentSpec, site *Site) {
	labels := map[string]string{"site": site.Name}
	spec.Replicas = &site.Spec.Pods
	spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	spec.Template.Labels = labels
	spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "nginx:1.29",
		VolumeMounts: []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html"}},
	}}
	source := &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: site.Name},
	}
	spec.Template.Spec.Volumes = []corev1.Volume{{
		Name: "page", VolumeSource: corev1.VolumeSource{ConfigMap: source},
	}}
}

func main() {
	manager, err := ctrl.NewManager(clusterConfig(), ctrl.Options{
		Scheme: scheme, LeaderElection: true, LeaderElectionID: "sites", LeaderElectionNamespace: "default",
		HealthProbeBindAddress: probeAddress(),
	})
	if err != nil {
		os.Exit(1)
	}
	reconciler := &SiteReconciler{manager.GetClient(), manager.GetEventRecorder("site-operator")}
	err = ctrl.NewControllerManagedBy(manager).For(&Site{}).
		Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Complete(reconciler)
	if err != nil {
		os.Exit(1)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
