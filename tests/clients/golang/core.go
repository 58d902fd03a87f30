// The exercises of client-go that need built-in resources.
package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// sink writes the events of a recorder.
type sink struct {
	events typedcorev1.EventInterface
}

func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.events.CreateWithEventNamespaceWithContext(context.Background(), event)
}

func (s *sink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.events.UpdateWithEventNamespaceWithContext(context.Background(), event)
}

func (s *sink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.events.PatchWithEventNamespaceWithContext(context.Background(), event, data)
}

func runCoreSubresources(ctx context.Context, c clients) error {
	for _, step := range []func(context.Context, clients) error{scale, evict, token, access} {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web:1"}}},
	}
}

func scale(ctx context.Context, c clients) error {
	two := int32(2)
	deployments := c.typed.AppsV1().Deployments(c.namespace)
	_, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &two,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
			Template: podTemplate(),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	found, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	wanted := &autoscalingv1.Scale{ObjectMeta: found.ObjectMeta, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	if _, err := deployments.UpdateScale(ctx, "web", wanted, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	deployment, err := deployments.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("5", fmt.Sprint(*deployment.Spec.Replicas))
}

func evict(ctx context.Context, c clients) error {
	pods := c.typed.CoreV1().Pods(c.namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}, Spec: podTemplate().Spec}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: c.namespace}}
	if err := pods.EvictV1(ctx, eviction); err != nil {
		return fmt.Errorf("eviction: %w", err)
	}
	if _, err := pods.Get(ctx, "web-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("an evicted pod: %v", err)
	}
	return nil
}

func token(ctx context.Context, c clients) error {
	accounts := c.typed.CoreV1().ServiceAccounts(c.namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder"}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	made, err := accounts.CreateToken(ctx, "builder", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	if made.Status.Token == "" {
		return fmt.Errorf("an empty token")
	}
	return nil
}

func access(ctx context.Context, c clients) error {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: c.namespace, Verb: "list", Resource: "pods",
			},
		},
	}
	found, err := c.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("access review: %w", err)
	}
	return expect("true", fmt.Sprint(found.Status.Allowed))
}
