// The answers to GET /api and GET /apis.
//
// In a cluster the aggregation layer gives them, in front of the server that
// runs here; without it both paths are 404 and no client could find out which
// resources there are. The documents for one group (/apis/GROUP and
// /apis/GROUP/VERSION) come from the apiextensions-apiserver itself.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

const aggregatedList = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// installDiscovery serves both forms, as a cluster does: the aggregated one to
// clients that ask for it, the legacy one to all others.
func installDiscovery(server *genericapiserver.GenericAPIServer) {
	apis := aggregated.WrapAggregatedDiscoveryToHandler(
		legacyGroups(server.AggregatedDiscoveryGroupManager), server.AggregatedDiscoveryGroupManager, nil)
	api := aggregated.WrapAggregatedDiscoveryToHandler(
		http.HandlerFunc(noLegacyVersions), server.AggregatedLegacyDiscoveryGroupManager, nil)
	server.Handler.GoRestfulContainer.Add(apis.GenerateWebService("/apis", metav1.APIGroupList{}))
	server.Handler.GoRestfulContainer.Add(api.GenerateWebService("/api", metav1.APIVersions{}))
}

// noLegacyVersions says that there is no v1: pods and the like are not here.
func noLegacyVersions(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	})
}

// legacyGroups derives the legacy list from the aggregated one, which is the
// only list of all groups that the controllers of the server keep.
func legacyGroups(manager http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		request = request.Clone(request.Context())
		request.Header = http.Header{"Accept": {aggregatedList}}
		recorder := httptest.NewRecorder()
		manager.ServeHTTP(recorder, request)
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(recorder.Body.Bytes(), &list); err != nil {
			http.Error(w, fmt.Sprintf("no aggregated discovery: %v", err), http.StatusInternalServerError)
			return
		}
		writeJSON(w, groupList(list))
	})
}

func groupList(list apidiscoveryv2.APIGroupDiscoveryList) metav1.APIGroupList {
	groups := metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	}
	for _, item := range list.Items {
		group := metav1.APIGroup{Name: item.Name}
		for _, version := range item.Versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
				GroupVersion: item.Name + "/" + version.Version,
				Version:      version.Version,
			})
		}
		group.PreferredVersion = group.Versions[0]
		groups.Groups = append(groups.Groups, group)
	}
	return groups
}

func writeJSON(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
