package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/object"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"

	"karpenter-bench/internal/scenario"
)

// nodeClass is what every pool refers to; nothing reads its content.
var nodeClass = func() *karpv1.NodeClassReference {
	kind := object.GVK(&v1alpha1.TestNodeClass{})
	return &karpv1.NodeClassReference{Group: kind.Group, Kind: kind.Kind, Name: "default"}
}()

func quantities(in scenario.Resources) (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	for name, text := range in {
		parsed, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", name, text, err)
		}
		out[corev1.ResourceName(name)] = parsed
	}
	return out, nil
}

func newInstanceType(in scenario.InstanceType) (*cloudprovider.InstanceType, error) {
	capacity, err := quantities(in.Capacity)
	if err != nil {
		return nil, err
	}
	overhead, err := quantities(in.Overhead)
	if err != nil {
		return nil, err
	}
	out := &cloudprovider.InstanceType{
		Name:         in.Name,
		Capacity:     capacity,
		Overhead:     &cloudprovider.InstanceTypeOverhead{KubeReserved: overhead},
		Requirements: scheduling.NewLabelRequirements(in.Labels),
	}
	zones, capacityTypes := map[string]bool{}, map[string]bool{}
	for _, offering := range in.Offerings {
		out.Offerings = append(out.Offerings, &cloudprovider.Offering{
			Price:     offering.Price,
			Available: offering.Available,
			Requirements: scheduling.NewLabelRequirements(map[string]string{
				corev1.LabelTopologyZone: offering.Zone, karpv1.CapacityTypeLabelKey: offering.CapacityType,
			}),
		})
		if offering.Available {
			zones[offering.Zone], capacityTypes[offering.CapacityType] = true, true
		}
	}
	require := func(key string, operator corev1.NodeSelectorOperator, values ...string) {
		out.Requirements.Add(scheduling.NewRequirement(key, operator, values...))
	}
	require(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, in.Name)
	require(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, slices.Sorted(maps.Keys(zones))...)
	require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, slices.Sorted(maps.Keys(capacityTypes))...)
	for _, requirement := range in.Requirements {
		require(requirement.Key, corev1.NodeSelectorOperator(requirement.Operator), requirement.Values...)
	}
	return out, nil
}

// newNodePool leaves disruption out: placing pods does not read it.
func newNodePool(in scenario.NodePool) (*karpv1.NodePool, error) {
	limits, err := quantities(in.Limits)
	if err != nil {
		return nil, err
	}
	out := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: in.Name, UID: types.UID("pool-" + in.Name)}}
	out.Spec.Limits = karpv1.Limits(limits)
	if in.Weight != 0 {
		out.Spec.Weight = &in.Weight
	}
	out.Spec.Template.Labels = in.Labels
	spec := &out.Spec.Template.Spec
	spec.NodeClassRef, spec.Taints, spec.StartupTaints = nodeClass, in.Taints, in.StartupTaints
	for _, requirement := range in.Requirements {
		spec.Requirements = append(spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
			Key:      requirement.Key,
			Operator: corev1.NodeSelectorOperator(requirement.Operator),
			Values:   requirement.Values, MinValues: requirement.MinValues,
		})
	}
	out.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
	out.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
	return out, nil
}

// newPod gives a pod a UID that sorts as its number, because the scheduler
// orders pods of equal size and age by UID.
func newPod(in scenario.Pod, number int) (*corev1.Pod, error) {
	requests, err := quantities(in.Requests)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", in.Name, err)
	}
	container := corev1.Container{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: requests}}
	for _, port := range in.HostPorts {
		container.Ports = append(container.Ports, corev1.ContainerPort{
			ContainerPort: port.Port, HostPort: port.Port, HostIP: port.HostIP,
			Protocol: cmp.Or(corev1.Protocol(port.Protocol), corev1.ProtocolTCP),
		})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: in.Name, Namespace: cmp.Or(in.Namespace, "default"), Labels: in.Labels, Annotations: in.Annotations,
			UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", number)),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: cmp.Or(in.Owner, "ReplicaSet"), Name: in.Name, UID: types.UID("owner-" + in.Name),
			}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container}, Priority: in.Priority,
			NodeSelector: in.NodeSelector, Affinity: in.Affinity, Tolerations: in.Tolerations,
			TopologySpreadConstraints: in.TopologySpreadConstraints,
		},
	}, nil
}

func waiting(pod *corev1.Pod) *corev1.Pod {
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}
	return pod
}

func bound(pod *corev1.Pod, node string) *corev1.Pod {
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	return pod
}

func newDaemonSet(in scenario.Pod) (*appsv1.DaemonSet, error) {
	pod, err := newPod(in, 0)
	if err != nil {
		return nil, err
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: types.UID("daemonset-" + pod.Name)},
		Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: pod.Spec}},
	}, nil
}

// newNode makes a ready node and, if a pool owns it, the claim it came from.
func newNode(in scenario.Node, instanceType *cloudprovider.InstanceType) (*corev1.Node, *karpv1.NodeClaim, error) {
	capacity, err := quantities(in.Capacity)
	if err != nil {
		return nil, nil, err
	}
	allocatable, err := quantities(in.Allocatable)
	if err != nil {
		return nil, nil, err
	}
	if instanceType != nil && len(capacity) == 0 {
		capacity = instanceType.Capacity
	}
	if instanceType != nil && len(allocatable) == 0 {
		allocatable = instanceType.Allocatable()
	}
	meta := metav1.ObjectMeta{
		Name: in.Name, UID: types.UID("node-" + in.Name), Labels: nodeLabels(in),
		CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
	}
	providerID := "bench:///" + in.Name
	node := &corev1.Node{
		ObjectMeta: meta,
		Spec:       corev1.NodeSpec{ProviderID: providerID, Taints: in.Taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if in.NodePool == "" {
		return node, nil, nil
	}
	claim := &karpv1.NodeClaim{
		ObjectMeta: meta,
		Spec:       karpv1.NodeClaimSpec{NodeClassRef: nodeClass, Taints: in.Taints},
		Status:     karpv1.NodeClaimStatus{NodeName: in.Name, ProviderID: providerID, Capacity: capacity, Allocatable: allocatable},
	}
	for _, reached := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
		claim.StatusConditions().SetTrue(reached)
	}
	return node, claim, nil
}

func nodeLabels(in scenario.Node) map[string]string {
	labels := maps.Clone(in.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range map[string]string{
		corev1.LabelHostname:           in.Name,
		corev1.LabelInstanceTypeStable: in.InstanceType,
		corev1.LabelTopologyZone:       in.Zone,
		karpv1.CapacityTypeLabelKey:    in.CapacityType,
		karpv1.NodePoolLabelKey:        in.NodePool,
	} {
		if value != "" {
			labels[key] = value
		}
	}
	if in.NodePool != "" {
		labels[karpv1.NodeRegisteredLabelKey], labels[karpv1.NodeInitializedLabelKey] = "true", "true"
		labels[karpv1.NodeClassLabelKey(nodeClass.GroupKind())] = nodeClass.Name
	}
	return labels
}
