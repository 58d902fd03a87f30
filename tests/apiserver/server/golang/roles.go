// Users and their rights, by Kubernetes' own PolicyRules.
//
// kube-apiserver's RBAC belongs to the module k8s.io/kubernetes, which cannot
// be imported, and reads its roles from resources that this server lacks. So
// the rules stand in a JSON file, which is read again for each request: a
// test changes rights by replacing the file. The rest is the API server's
// own: the handlers that authenticate and authorize, and the texts of their
// 401 and 403.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// role is what a RoleBinding grants: rules in one namespace, or, with an empty
// namespace, what a ClusterRoleBinding grants.
type role struct {
	Namespace string              `json:"namespace"`
	Rules     []rbacv1.PolicyRule `json:"rules"`
}

type account struct {
	Token string `json:"token"`
	User  string `json:"user"`
	Roles []role `json:"roles"`
}

// rolesFile holds the accounts of a server that was started with -roles.
type rolesFile string

func (file rolesFile) accounts() ([]account, error) {
	content, err := os.ReadFile(string(file))
	if err != nil {
		return nil, err
	}
	var found []account
	if err := json.Unmarshal(content, &found); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return found, nil
}

// applyTo makes a server check tokens and rights. A request without a token is
// one of the tests themselves, and may do everything.
func (file rolesFile) applyTo(config *genericapiserver.RecommendedConfig) {
	config.Authentication.Authenticator = union.NewFailOnError(
		bearertoken.New(authenticator.TokenFunc(file.authenticate)),
		authenticator.RequestFunc(authenticateTest))
	config.Authorization.Authorizer = authorizer.AuthorizerFunc(file.authorize)
}

func authenticateTest(request *http.Request) (*authenticator.Response, bool, error) {
	if request.Header.Get("Authorization") != "" {
		return nil, false, nil
	}
	groups := []string{user.AllAuthenticated, user.SystemPrivilegedGroup}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "test", Groups: groups}}, true, nil
}

func (file rolesFile) authenticate(_ context.Context, token string) (*authenticator.Response, bool, error) {
	accounts, err := file.accounts()
	for _, each := range accounts {
		if each.Token == token {
			info := &user.DefaultInfo{Name: each.User, Groups: []string{user.AllAuthenticated}}
			return &authenticator.Response{User: info}, true, nil
		}
	}
	return nil, false, err
}

func (file rolesFile) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	if !a.IsResourceRequest() && a.IsReadOnly() { // as the role system:discovery grants it
		return authorizer.DecisionAllow, "", nil
	}
	accounts, err := file.accounts()
	for _, each := range accounts {
		if each.User == a.GetUser().GetName() && slices.ContainsFunc(each.Roles, func(r role) bool { return r.allows(a) }) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", err
}

func (r role) allows(a authorizer.Attributes) bool {
	if r.Namespace != "" && r.Namespace != a.GetNamespace() {
		return false
	}
	return slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return allows(rule, a) })
}

// allows decides as RBAC's RuleAllows does for resources.
func allows(rule rbacv1.PolicyRule, a authorizer.Attributes) bool {
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	named := len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName())
	return a.IsResourceRequest() && named && includes(rule.Verbs, a.GetVerb()) &&
		includes(rule.APIGroups, a.GetAPIGroup()) && includes(rule.Resources, resource)
}

func includes(allowed []string, value string) bool {
	return slices.Contains(allowed, "*") || slices.Contains(allowed, value)
}
