// The RBAC authorizer of Kubernetes, and its storages of roles and bindings, without a server.
//
// Reads a JSON list of cases from stdin, each with the objects of a cluster, a user and a request, and
// writes the list of the answers. A request is either a create or an update of an RBAC object, or a
// question to the authorizer.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	clusterrolepolicy "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	clusterrolebindingpolicy "k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/policybased"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	rolepolicy "k8s.io/kubernetes/pkg/registry/rbac/role/policybased"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	rolebindingpolicy "k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	rbacauthorizer "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

type testCase struct {
	Objects []json.RawMessage
	User    struct {
		Name   string
		Groups []string
	}
	Verb, Group, Resource, Part, Namespace, Name, Path string
	// The object to write; null for a question to the authorizer.
	Body json.RawMessage
}

type answer struct {
	Allowed bool           `json:"allowed"`
	Status  *metav1.Status `json:"status,omitempty"`
}

// The default roles that every cluster has and that the test's servers know.
var defaultRoles = map[string]bool{
	"system:basic-user": true, "system:discovery": true, "system:public-info-viewer": true,
}

func main() {
	var cases []testCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := make([]answer, 0, len(cases))
	for i := range cases {
		answers = append(answers, respond(&cases[i]))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(1)
	}
}

func respond(each *testCase) answer {
	policy := readPolicy(each.Objects)
	sender := &user.DefaultInfo{Name: each.User.Name, Groups: each.User.Groups}
	decider := rbacauthorizer.New(policy, policy, policy, policy)
	if each.Body == nil {
		decision, _, _ := decider.Authorize(context.Background(), authorizer.AttributesRecord{
			User: sender, Verb: each.Verb, APIGroup: each.Group, Resource: each.Resource,
			Subresource: each.Part, Namespace: each.Namespace, Name: each.Name,
			ResourceRequest: each.Path == "", Path: each.Path,
		})
		return answer{Allowed: decision == authorizer.DecisionAllow}
	}
	err := write(each, policy, sender, decider)
	if err == nil {
		return answer{Allowed: true}
	}
	if refusal, ok := err.(apierrors.APIStatus); ok {
		status := refusal.Status()
		return answer{Status: &status}
	}
	return answer{Status: &metav1.Status{Code: 500, Message: err.Error()}} // as the server answers
}

func write(each *testCase, policy *clusterPolicy, sender user.Info, decider *rbacauthorizer.RBACAuthorizer) error {
	requested := each.Name
	if each.Verb == "create" {
		requested = ""
	}
	ctx := genericapirequest.WithUser(context.Background(), sender)
	ctx = genericapirequest.WithNamespace(ctx, each.Namespace)
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: each.Verb, APIGroup: rbacv1.GroupName, APIVersion: "v1",
		Resource: each.Resource, Namespace: each.Namespace, Name: requested,
	})
	resolver := validation.NewDefaultRuleResolver(policy, policy, policy, policy)
	inner := &storage{policy: policy, resource: each.Resource}
	var outer rest.CreaterUpdater
	switch each.Resource {
	case "roles":
		inner.strategy, inner.empty = role.Strategy, &rbac.Role{}
		outer = rolepolicy.NewStorage(inner, decider, resolver)
	case "clusterroles":
		inner.strategy, inner.empty = clusterrole.Strategy, &rbac.ClusterRole{}
		outer = clusterrolepolicy.NewStorage(inner, decider, resolver)
	case "rolebindings":
		inner.strategy, inner.empty = rolebinding.Strategy, &rbac.RoleBinding{}
		outer = rolebindingpolicy.NewStorage(inner, decider, resolver)
	case "clusterrolebindings":
		inner.strategy, inner.empty = clusterrolebinding.Strategy, &rbac.ClusterRoleBinding{}
		outer = clusterrolebindingpolicy.NewStorage(inner, decider, resolver)
	}
	sent, err := decode(each.Body)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if each.Verb == "create" {
		_, err = outer.Create(ctx, sent, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		return err
	}
	_, _, err = outer.Update(ctx, each.Name, rest.DefaultUpdatedObjectInfo(sent),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// storage runs the strategy of a resource and stores nothing.
type storage struct {
	rest.StandardStorage
	policy   *clusterPolicy
	resource string
	strategy interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
	}
	empty runtime.Object
}

func (s *storage) Create(
	ctx context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions,
) (runtime.Object, error) {
	return obj, beforeCreate(ctx, s.strategy, obj)
}

func beforeCreate(ctx context.Context, strategy rest.RESTCreateStrategy, obj runtime.Object) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	rest.FillObjectMetaSystemFields(accessor)
	return rest.BeforeCreate(strategy, ctx, obj)
}

func (s *storage) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	_ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	namespace, _ := genericapirequest.NamespaceFrom(ctx)
	existing := s.policy.find(s.resource, namespace, name)
	if existing == nil {
		obj, err := info.UpdatedObject(ctx, s.empty)
		if err != nil {
			return nil, false, err
		}
		return obj, true, beforeCreate(ctx, s.strategy, obj)
	}
	obj, err := info.UpdatedObject(ctx, existing)
	if err != nil {
		return nil, false, err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, false, err
	}
	if accessor.GetResourceVersion() == "" {
		accessor.SetResourceVersion("1") // as the store does for an unconditional update
	}
	return obj, false, rest.BeforeUpdate(s.strategy, ctx, obj, existing)
}

// clusterPolicy has the RBAC objects of a case and the default ones.
type clusterPolicy struct {
	roles               []*rbacv1.Role
	clusterRoles        []*rbacv1.ClusterRole
	roleBindings        []*rbacv1.RoleBinding
	clusterRoleBindings []*rbacv1.ClusterRoleBinding
}

func readPolicy(objects []json.RawMessage) *clusterPolicy {
	policy := &clusterPolicy{}
	for _, each := range bootstrappolicy.ClusterRoles() {
		if defaultRoles[each.Name] {
			policy.clusterRoles = append(policy.clusterRoles, &each)
		}
	}
	for _, each := range bootstrappolicy.ClusterRoleBindings() {
		if defaultRoles[each.Name] {
			policy.clusterRoleBindings = append(policy.clusterRoleBindings, &each)
		}
	}
	for _, raw := range objects {
		found, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			panic(err)
		}
		legacyscheme.Scheme.Default(found)
		switch each := found.(type) {
		case *rbacv1.Role:
			policy.roles = append(policy.roles, each)
		case *rbacv1.ClusterRole:
			policy.clusterRoles = append(policy.clusterRoles, each)
		case *rbacv1.RoleBinding:
			policy.roleBindings = append(policy.roleBindings, each)
		case *rbacv1.ClusterRoleBinding:
			policy.clusterRoleBindings = append(policy.clusterRoleBindings, each)
		}
	}
	return policy
}

func decode(raw []byte) (runtime.Object, error) {
	return runtime.Decode(legacyscheme.Codecs.UniversalDecoder(rbac.SchemeGroupVersion), raw)
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: resource}, name)
}

func (p *clusterPolicy) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	for _, each := range p.roles {
		if each.Namespace == namespace && each.Name == name {
			return each, nil
		}
	}
	return nil, notFound("roles", name)
}

func (p *clusterPolicy) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	for _, each := range p.clusterRoles {
		if each.Name == name {
			return each, nil
		}
	}
	return nil, notFound("clusterroles", name)
}

func (p *clusterPolicy) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	found := []*rbacv1.RoleBinding{}
	for _, each := range p.roleBindings {
		if each.Namespace == namespace {
			found = append(found, each)
		}
	}
	return found, nil
}

func (p *clusterPolicy) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return p.clusterRoleBindings, nil
}

func (p *clusterPolicy) find(resource, namespace, name string) runtime.Object {
	var found runtime.Object
	switch resource {
	case "roles":
		for _, each := range p.roles {
			if each.Namespace == namespace && each.Name == name {
				found = each
			}
		}
	case "clusterroles":
		for _, each := range p.clusterRoles {
			if each.Name == name {
				found = each
			}
		}
	case "rolebindings":
		for _, each := range p.roleBindings {
			if each.Namespace == namespace && each.Name == name {
				found = each
			}
		}
	case "clusterrolebindings":
		for _, each := range p.clusterRoleBindings {
			if each.Name == name {
				found = each
			}
		}
	}
	if found == nil {
		return nil
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(found, rbac.SchemeGroupVersion)
	if err != nil {
		panic(err)
	}
	return internal
}
