"""``Resource``, the thing that a URL names, and the table of resources that every cluster serves.

With the table, ``informers.informer("deploy")`` works without a request: plural, singular, short
name and kind are understood, each also with ``.group`` or ``.version.group``. Discovery finds the
resources that a cluster adds.

Source of the table: the discovery documents of Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from msgspec import Struct
from msgspec.structs import force_setattr

from aioinformer.errors import UnknownResource

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def is_path_segment(text: str) -> bool:
    """Return True if ``text`` is one segment of a URL's path, and stays so on the way.

    ``.`` and ``..`` are resolved on the way and reach another path, and a ``%`` may become a slash:
    the API server's own rule for names (``IsValidPathSegmentName``). Spaces and control characters
    are excluded too: a shown name must not control a terminal.
    """
    plain = text.isprintable() and " " not in text and "/" not in text and "%" not in text
    return plain and text not in ("", ".", "..")


class Resource(Struct, frozen=True, eq=False):
    """A resource, as the API server's URLs name it.

    Two resources are equal if their group, version and plural are, which make up the URL. So a
    resource that is written by hand, one that discovery has found and a built-in name stand for the
    same resource, and requests for them share one informer.

    ``group`` is empty for the core group; ``plural`` is the name in the URL; ``singular`` is the
    kind in lower case by default; ``short_names`` are abbreviations, such as ``("deploy",)``.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts = {"version": self.version, "plural": self.plural, "group": self.group or "core"}
        for part, value in parts.items():
            if not is_path_segment(value):
                raise ValueError(f"a resource's {part} is one URL segment, not {value!r}")
        if not self.singular:
            force_setattr(self, "singular", self.kind.lower())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        return self._identity == other._identity

    def __ne__(self, other: object) -> bool:  # the method of Struct compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, str, str]:
        return self.group, self.version, self.plural

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the URL path of the collection, or of one object.

        Raises:
            ValueError: a namespace is given for a cluster-scoped resource, or is no DNS label;
                or the name is more than one segment of a URL.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self} is cluster-scoped: it has no namespace {namespace!r}")
        if namespace and not _DNS_LABEL.fullmatch(namespace):
            raise ValueError(
                f"a namespace is a DNS label (at most 63 lower-case letters, digits and '-', "
                f"with a letter or digit at both ends), not {namespace!r}"
            )
        if name and not is_path_segment(name):
            raise ValueError(
                f"the name of an object is one URL segment (no '/', no '%', not '.' or '..'), "
                f"not {name!r}"
            )
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")

    def names(self) -> Iterator[str]:
        """Yield every name of this resource, in lower case."""
        plain = (self.plural, self.singular, *self.short_names, self.kind.lower())
        yield from dict.fromkeys(plain)
        yield f"{self.plural}.{self.version}.{self.group}".rstrip(".")
        if self.group:
            yield f"{self.plural}.{self.group}"

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


# plural, kind, then "-" for cluster-scoped or short names, by group and version.
_TABLE = """
v1
  configmaps ConfigMap cm
  endpoints Endpoints ep
  events Event ev
  limitranges LimitRange limits
  namespaces Namespace - ns
  nodes Node - no
  persistentvolumeclaims PersistentVolumeClaim pvc
  persistentvolumes PersistentVolume - pv
  pods Pod po
  podtemplates PodTemplate
  replicationcontrollers ReplicationController rc
  resourcequotas ResourceQuota quota
  secrets Secret
  serviceaccounts ServiceAccount sa
  services Service svc
apps/v1
  controllerrevisions ControllerRevision
  daemonsets DaemonSet ds
  deployments Deployment deploy
  replicasets ReplicaSet rs
  statefulsets StatefulSet sts
batch/v1
  cronjobs CronJob cj
  jobs Job
autoscaling/v2
  horizontalpodautoscalers HorizontalPodAutoscaler hpa
policy/v1
  poddisruptionbudgets PodDisruptionBudget pdb
networking.k8s.io/v1
  ingressclasses IngressClass -
  ingresses Ingress ing
  ipaddresses IPAddress - ip
  networkpolicies NetworkPolicy netpol
  servicecidrs ServiceCIDR -
rbac.authorization.k8s.io/v1
  clusterrolebindings ClusterRoleBinding -
  clusterroles ClusterRole -
  rolebindings RoleBinding
  roles Role
storage.k8s.io/v1
  csidrivers CSIDriver -
  csinodes CSINode -
  csistoragecapacities CSIStorageCapacity
  storageclasses StorageClass - sc
  volumeattachments VolumeAttachment -
  volumeattributesclasses VolumeAttributesClass - vac
resource.k8s.io/v1
  deviceclasses DeviceClass -
  resourceclaims ResourceClaim
  resourceclaimtemplates ResourceClaimTemplate
  resourceslices ResourceSlice -
scheduling.k8s.io/v1
  priorityclasses PriorityClass - pc
node.k8s.io/v1
  runtimeclasses RuntimeClass -
coordination.k8s.io/v1
  leases Lease
discovery.k8s.io/v1
  endpointslices EndpointSlice
certificates.k8s.io/v1
  certificatesigningrequests CertificateSigningRequest - csr
flowcontrol.apiserver.k8s.io/v1
  flowschemas FlowSchema -
  prioritylevelconfigurations PriorityLevelConfiguration -
admissionregistration.k8s.io/v1
  mutatingwebhookconfigurations MutatingWebhookConfiguration -
  validatingadmissionpolicies ValidatingAdmissionPolicy -
  validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding -
  validatingwebhookconfigurations ValidatingWebhookConfiguration -
apiextensions.k8s.io/v1
  customresourcedefinitions CustomResourceDefinition - crd crds
apiregistration.k8s.io/v1
  apiservices APIService -
events.k8s.io/v1
  events Event ev
"""


def parse_table(table: str) -> Iterator[Resource]:
    group = version = ""
    for line in filter(None, table.splitlines()):
        if not line.startswith(" "):
            group, _, version = line.rpartition("/")
            continue
        plural, kind, *rest = line.split()
        cluster_scoped = rest[:1] == ["-"]
        short_names = tuple(rest[1:] if cluster_scoped else rest)
        yield Resource(
            group, version, plural, kind, namespaced=not cluster_scoped, short_names=short_names
        )


BUILT_IN: tuple[Resource, ...] = tuple(parse_table(_TABLE))
"""The resources that every cluster serves, the core group first."""

_BUILT_IN_GROUPS = frozenset(each.group for each in BUILT_IN)

_BY_IDENTITY = {resource: resource for resource in BUILT_IN}
_BY_NAME: dict[str, Resource] = {}
for _resource in BUILT_IN:
    for _name in _resource.names():
        _BY_NAME.setdefault(_name, _resource)  # the first one wins: "events" means the core group's


def is_built_in_group(group: str) -> bool:
    """Return True for a group of Kubernetes itself. Groups of other APIs have a dot."""
    return "." not in group or group in _BUILT_IN_GROUPS


def find_built_in(name: str) -> Resource:
    """Return the built-in resource with this name, in whatever form or case.

    Raises:
        UnknownResource: there is none. The message suggests the nearest names, and the way to a
            resource that the cluster adds.
    """
    found = _BY_NAME.get(name.lower()) or _find_with_group(name.lower())
    if found is None:
        from difflib import get_close_matches  # rarely needed

        alike = get_close_matches(
            name.lower(), _BY_NAME, n=9
        )  # up to three may be names of one resource
        near = list(dict.fromkeys(str(_BY_NAME[each]) for each in alike))[:3]
        hint = f" (did you mean {' or '.join(near)}?)" if near else ""
        raise UnknownResource(
            f"no built-in resource is called {name!r}{hint}; for a custom resource pass a "
            f"Resource, or what `await client.resource({name!r})` finds on the server"
        )
    return found


def _find_with_group(name: str) -> Resource | None:
    """Return the resource of a singular, short name or kind with a group: ``deployment.apps``."""
    plain, _, rest = name.partition(".")
    for each in BUILT_IN:
        suffixes = (each.group, f"{each.version}.{each.group}".rstrip("."))
        if rest and rest in suffixes and plain in each.names():
            return each
    return None


def resolve_built_in(resource: str | Resource) -> Resource:
    """Return the built-in resource with this name or identity, or else ``resource`` itself.

    A resource that a program has written by hand may lack its short names, or have a wrong kind.

    Raises:
        TypeError: ``resource`` is neither a name nor a ``Resource``.
        UnknownResource: ``resource`` is a name, and no built-in resource has it.
    """
    if isinstance(resource, str):
        return find_built_in(resource)
    if not isinstance(cast("object", resource), Resource):
        raise TypeError(f"a resource is a name such as 'pods', or a Resource, not {resource!r}")
    return _BY_IDENTITY.get(resource, resource)


def versioned_name(resource: Resource) -> str:
    """Return the name of a resource for logs, health and metrics, different for each version.

    As kubectl writes it, without the usual version (that of the built-in resource, or v1):
    ``widgets.example.com``, but ``widgets.v1beta1.example.com``.
    """
    built_in = _BY_NAME.get(str(resource))
    usual = "v1" if built_in is None else built_in.version
    if resource.version == usual:
        return str(resource)
    return f"{resource.plural}.{resource.version}.{resource.group}".rstrip(".")
